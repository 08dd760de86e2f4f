import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { type Area, areas, type Check, type Finding } from "../doctor/finding.ts";
import { exitCodes } from "../exit-codes.ts";
import { printable } from "../terminal/printable.ts";
import { counted } from "../terminal/quantities.ts";
import { oneOf } from "../values.ts";

const options = {} as const;

export const doctor = command({
  name: "doctor",
  summary: "check this machine and its fleet, and suggest fixes",
  positionals: ["[AREA...]"],
  about: `AREA is one or more of ${areas.join(", ")}; all when absent. Starts a sandbox and tries to escape from it, instead
of trusting the settings. The exit code is 1 when something is bad.`,
  examples: [
    { line: "berth doctor", note: "everything" },
    { line: "berth doctor redis fleet", note: "on a machine without an engine" },
    { line: "BERTH_RUNTIME=runsc berth doctor sandbox", note: "what gVisor holds back here" },
    { line: "berth doctor --json | jq '.findings[] | select(.state == \"bad\")'", note: "for a monitor" },
  ],
  options,
  run,
});

const colours = { ok: "green", warn: "yellow", bad: "red" } as const;

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { terminal, config, interrupts } = context;
  const usual = areas.filter((area) => area !== (config.gatewayUrl === undefined ? "gateway" : "redis"));
  const wanted = positionals.length === 0 ? usual : positionals.map((text) => oneOf("AREA", text, areas));
  const findings: Finding[] = [];
  for (const area of wanted) {
    if (interrupts.interrupted) return interrupts.exitCode;
    for await (const finding of await checkOf(area, context)) {
      findings.push(finding);
      if (!terminal.json) await terminal.line(lineOf(finding, context));
    }
  }
  const count = (state: Finding["state"]) => findings.filter((one) => one.state === state).length;
  const { ok, warn, bad } = { ok: count("ok"), warn: count("warn"), bad: count("bad") };
  if (terminal.json) await terminal.answer({ healthy: bad === 0, findings }, () => "");
  else await terminal.line(`${ok} ok, ${counted(warn, "warning")}, ${bad} bad`);
  return bad === 0 ? exitCodes.ok : exitCodes.failed;
}

/** The checks of each area, imported only when the area is chosen. */
async function checkOf(area: Area, { config, door, interrupts }: Context): Promise<Check> {
  switch (area) {
    case "engine":
      return (await import("../doctor/engine-checks.ts")).engineChecks(config);
    case "host":
      return (await import("../doctor/host-checks.ts")).hostChecks(config);
    case "redis":
      return (await import("../doctor/redis-checks.ts")).redisChecks(config);
    case "gateway":
      return (await import("../doctor/gateway-checks.ts")).gatewayChecks(config);
    case "fleet":
      return (await import("../doctor/fleet-checks.ts")).fleetChecks(door);
    case "sandbox":
      return (await import("../doctor/sandbox-checks.ts")).sandboxChecks(config, interrupts.signal());
  }
}

function lineOf({ area, state, text, todo }: Finding, { terminal }: Context): string {
  const line = `${terminal.style(colours[state], state.padEnd(4))}  ${area.padEnd(8)} ${printable(text)}`;
  return todo === undefined ? line : `${line}\n${" ".repeat(15)}→ ${todo}`;
}
