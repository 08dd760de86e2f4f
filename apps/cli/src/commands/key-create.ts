import { problemsOf, tighteningLayer } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { withAssignments } from "../profile-settings.ts";
import { durationMs, tenantName, wholeNumber } from "../values.ts";

const options = {
  admin: { type: "boolean", about: "may do everything" },
  tenant: { type: "string", value: "TENANT", about: "may see and touch this tenant only" },
  profile: {
    type: "string",
    multiple: true,
    value: "NAME",
    about: "its jobs may name this profile besides default",
  },
  pool: {
    type: "string",
    multiple: true,
    value: "NAME",
    about: "its jobs may name this pool besides default",
  },
  set: {
    type: "string",
    multiple: true,
    value: "FIELD=VALUE",
    about: "its jobs get no more than this of their profile",
  },
  agent: { type: "string", value: "NAME", about: "its jobs are all this agent's" },
  expires: { type: "string", value: "TIME", about: "stops working after 12h, 90d, …" },
  rate: { type: "string", value: "N", about: "requests a second at one gateway" },
} as const;

export const keyCreate = command({
  name: "key create",
  summary: "make a key for the gateway",
  positionals: ["NAME"],
  about:
    "NAME is a label for people. The key is printed this once, alone on stdout; the fleet has only its hash. Through Redis no key is needed\n" +
    "to make one, which is how the first is made.",
  examples: [
    { line: "berth key create ops --admin", note: "the first one" },
    { line: "berth key create 'acme backend' --tenant acme --expires 90d", note: "for one tenant" },
    {
      line: "berth key create 'acme train' --tenant acme --pool gpu",
      note: "after `berth tenant grant acme --pool gpu`",
    },
    {
      line: "berth key create web --tenant acme --set limits.cpus=0.5",
      note: "docs/profiles.md has the fields",
    },
    {
      line: "berth key create coder --tenant acme --agent coder",
      note: "held to the layer agent.acme.coder",
    },
    { line: "export BERTH_KEY=$(berth key create laptop --admin)", note: "straight into use" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { admin, tenant, profile, pool, agent, set, expires, rate } = values;
  if (admin === (tenant !== undefined)) throw new UsageError("either --admin or --tenant TENANT is needed");
  if (admin && (agent !== undefined || profile.length + pool.length + set.length > 0))
    throw new UsageError(
      "an admin key may use all profiles and pools; leave --profile, --pool, --agent and --set out",
    );
  const settings = tighteningLayer.safeParse(withAssignments({}, set));
  if (!settings.success) throw new UsageError(`--set: ${problemsOf(settings.error).join("; ")}`);
  const made = await (await context.door()).keys.create({
    role: admin ? "admin" : "tenant",
    name: positionals[0] ?? "",
    ...(tenant === undefined ? {} : { tenant: tenantName(tenant), profiles: profile, pools: pool }),
    ...(agent === undefined ? {} : { agent }),
    ...(set.length === 0 ? {} : { settings: settings.data }),
    ...(expires === undefined
      ? {}
      : { expiresInSeconds: Math.ceil(durationMs("--expires", expires) / 1_000) }),
    ...(rate === undefined ? {} : { rate: wholeNumber("--rate", rate) }),
  });
  await context.terminal.answer(made, () => made.token);
  if (!context.terminal.json) context.terminal.note(`berth: key ${made.key.id}; it is not shown again`);
  return exitCodes.ok;
}
