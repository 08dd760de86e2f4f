import type { JobResult } from "@berth/protocol";
import { execBlock, exitCodeOf } from "@berth/protocol";
import { type Arguments, command, jobOptions, type OptionValues } from "../command.ts";
import { UsageError } from "../complaint.ts";
import { namedVariable } from "../config.ts";
import type { Context } from "../context.ts";
import { execOrder } from "../exec-order.ts";
import { exitCodes } from "../exit-codes.ts";
import { LargeStdin } from "../large-stdin.ts";
import { endOf, placeOf, submitJob } from "../run-job.ts";
import { saveArtifacts } from "../save-artifacts.ts";
import { printEnd, shownOutput } from "../shown-command.ts";
import { readStdin, type Stdin } from "../stdin.ts";
import { printable } from "../terminal/printable.ts";
import { assignments, durationMs, wholeNumber } from "../values.ts";

const options = {
  ...jobOptions,
  timeout: {
    type: "string",
    short: "t",
    value: "TIME",
    about: "kill it after 500ms, 30s, 5m, …; can only shorten the profile's",
  },
  env: {
    type: "string",
    short: "e",
    value: "NAME=VALUE",
    multiple: true,
    about: "environment of the command",
  },
  secret: {
    type: "string",
    value: "NAME",
    multiple: true,
    about: "pass this environment variable as a secret: encrypted on its way, masked in all output",
  },
  cwd: { type: "string", short: "C", value: "DIR", about: "directory beneath the workspace" },
  interactive: { type: "boolean", short: "i", about: "pass stdin to the command, of any length" },
  artifact: {
    type: "string",
    short: "a",
    value: "GLOB",
    multiple: true,
    about: "keep files with matching paths as artifacts",
  },
  save: { type: "string", value: "DIR", about: "save those artifacts into a local directory" },
  delay: { type: "string", value: "TIME", about: "start it after 10m, 2h, …; with -d you need not wait" },
  detach: { type: "boolean", short: "d", about: "print the job's id and do not wait" },
  id: { type: "string", value: "ID", about: "the job's id; the same job is run once" },
  retries: { type: "string", value: "N", about: "retry it after a failure, up to N times" },
  idempotent: { type: "boolean", about: "may run again if its worker dies during the run" },
  "fork-of": {
    type: "string",
    value: "NAME",
    about: "run in a sandbox that starts with this snapshot's files; without --session it goes with the job",
  },
  block: {
    type: "boolean",
    about: "print what an agent reads, between [/exec CMD] and [END EXEC], when it has ended",
  },
} as const;

export const exec = command({
  name: "exec",
  summary: "run a command in a tenant's sandbox",
  positionals: ["TENANT"],
  words: "CMD…",
  about:
    "Output is streamed, stdout and stderr separately. The exit code is the command's own; 124 after a timeout, 137 out of\n" +
    "memory, 128 + N for a signal, 130 when it was cancelled, 127 when there is no such program. Ctrl-C cancels it. A single word is a\n" +
    "shell's command line; several words run without a shell.\n" +
    "\n" +
    "Stdin beyond 8 MiB is first written to a hidden file of the workspace, where it counts for the quota until the command has ended.\n" +
    "The same --id with another command is refused; with the same, it gives the result of the first.\n" +
    "\n" +
    "All jobs of a tenant share one sandbox unless --scope says otherwise. HTTP's /v1/sandbox/* gives each session a sandbox of its own;\n" +
    "`--scope session` reaches those.",
  examples: [
    { line: "berth exec acme -- python3 main.py", note: "a program and its arguments, no shell" },
    { line: "berth exec acme -- 'ls | wc -l'", note: "one word: a shell's line" },
    {
      line: "berth exec acme --timeout 5m --session build -- make -j2",
      note: "in parallel with the session main",
    },
    {
      line: "berth exec acme --scope session -- ls",
      note: "the sandbox of POST /v1/sandbox/bash with tenant_id acme",
    },
    { line: "tar c . | berth exec acme -i -- tar x", note: "with stdin" },
    {
      line: "berth exec acme --artifact '*.png' --save plots -- python3 plot.py",
      note: "and the files it made",
    },
    { line: "berth exec acme --detach -- make && berth logs -f JOB", note: "in the background" },
  ],
  options,
  run,
});

async function run(args: Arguments<typeof options>, context: Context): Promise<number> {
  const { values, words = [] } = args;
  const [tenant = ""] = args.positionals;
  if (words.length === 0) throw new UsageError("the command is missing", [`berth exec ${tenant} -- ls -l`]);
  const { timeout, cwd, retries, delay } = values;
  const wish = {
    env: assignments("--env", values.env),
    artifacts: values.artifact,
    cwd,
    timeoutMs: timeout === undefined ? undefined : durationMs("--timeout", timeout),
  };
  const { "fork-of": forkOf } = values;
  const usual = { tenant, ...placeOf(values), ...(forkOf === undefined ? {} : { forkOf }) };
  const how = {
    ...(values.id === undefined ? {} : { id: values.id }),
    ...(values.idempotent ? { idempotent: true } : {}),
    ...(delay === undefined ? {} : { delayMs: durationMs("--delay", delay) }),
    ...(values.secret.length === 0 ? {} : { secrets: ownSecrets(values.secret) }),
    ...(retries === undefined ? {} : { retry: { attempts: wholeNumber("--retries", retries) + 1 } }),
  };
  const stdin = values.interactive ? await readStdin(context) : undefined;
  const large = stdin?.rest && new LargeStdin(context, usual);
  const place = large?.place ?? usual;
  if (large) await writeStdin(large, stdin, values);
  const order = execOrder(words, { ...wish, place, stdin: large ?? stdin?.head });
  const job = await submitJob(context, { ...place, ...how, ...order }).catch(async (error: unknown) => {
    await large?.remove();
    throw error;
  });
  if (values.detach) {
    await context.terminal.answer({ id: job.id }, () => job.id);
    return exitCodes.ok;
  }
  const { block = false } = values;
  const ending = endOf(context, job, block ? job.result() : shownOutput(context, job));
  const whole = await ending.catch(async (error: unknown) => {
    await large?.remove();
    throw error;
  });
  await large?.removeAfter(whole);
  const ended = ofCommand(whole);
  const result = block ? { ...ended, text: execBlock(words.join(" "), ended.text ?? "") } : ended;
  await printEnd(context, job, result, block);
  if (isMissing(result) && cwd !== undefined && !context.terminal.json)
    context.terminal.note(
      `  --cwd: is there a directory ${printable(cwd)} in the workspace? berth ls ${tenant}`,
    );
  if (values.save !== undefined) await saveArtifacts(context, result.value.artifacts ?? [], values.save);
  return exitCodeOf(result.outcome) ?? exitCodes.failed;
}

/** Takes secrets from the environment: every process of the machine can read a command line. */
function ownSecrets(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => {
      const value = namedVariable(name);
      if (value === undefined)
        throw new UsageError(`--secret: there is no variable ${name} here`, [
          `export ${name}=…, or store it for all jobs: berth secret set TENANT ${name}`,
        ]);
      return [name, value];
    }),
  );
}

/** Writes large stdin to a file. The command removes that file, so it cannot be retried. */
async function writeStdin(
  large: LargeStdin,
  stdin: Stdin,
  given: Pick<OptionValues<typeof options>, "id" | "retries" | "idempotent">,
): Promise<void> {
  const repeats = (["id", "retries", "idempotent"] as const).filter((name) => given[name]);
  if (repeats.length > 0)
    throw new UsageError(
      `stdin of more than 8 MiB is given once, so --${repeats.join(" and --")} cannot be used`,
      ["berth write TENANT big.bin < FILE, then: berth exec TENANT -- 'command < big.bin'"],
    );
  await large.write(stdin);
}

/** The worker refused the job because its cwd does not exist. */
function isMissing({ outcome }: JobResult): boolean {
  return outcome.kind === "refused" && outcome.code === "not-found";
}

/** With large stdin the job is two steps (write file, run); the command is the last. */
function ofCommand(result: JobResult): JobResult {
  return result.value.steps?.at(-1) ?? result;
}
