import { randomBytes } from "node:crypto";
import { FileRefusal, type JobResult } from "@berth/protocol";
import { watchArtifacts } from "../artifacts/collect.ts";
import { joinNames, workspaceName } from "../files/workspace-name.ts";
import { Refusal, type RequestOf, type RunContext } from "../run-context.ts";
import { runCommand } from "./exec.ts";

const interpreters = {
  python: { program: "python3", extension: "py" },
  node: { program: "node", extension: "js" },
  bash: { program: "bash", extension: "sh" },
  sh: { program: "sh", extension: "sh" },
} as const;

/**
 * The source becomes a hidden file in the working directory for as long as it runs. There, because an interpreter looks for
 * modules beside the program: `import helper` and `require("./lib.js")` find the tenant's own. A file, because standard
 * input belongs to the program.
 */
export async function runCode(request: RequestOf<"code">, context: RunContext): Promise<JobResult> {
  const { artifacts: globs = [], newFiles: anywhere, cwd } = request;
  // In parallel with writing the source: alone it would take as long again.
  const watching = watchArtifacts({ globs, cwd, anywhere }, context);
  // Rethrown where it is awaited, if the source could be written.
  watching.catch(() => {});
  const result = await runSource(request, context, watching);
  return (await watching)(result);
}

async function runSource(
  request: RequestOf<"code">,
  context: RunContext,
  ready: Promise<unknown>,
): Promise<JobResult> {
  const { program, extension } = interpreters[request.language];
  const { files } = context.sandbox;
  const name = `.berth-code-${randomBytes(8).toString("hex")}.${extension}`;
  const path = joinNames(workspaceName(request.cwd), name);
  try {
    await writeSource(path, request, context);
    await ready;
    const result = await runCommand(
      {
        argv: [program, `./${name}`, ...request.args],
        cwd: request.cwd,
        env: request.env,
        stdin: request.stdin,
        limits: request.limits,
      },
      context,
    );
    const { outcome } = result;
    if (outcome.kind !== "refused" || outcome.code !== "command-not-found") return result;
    const message = `${request.language} code needs ${program}, which is not in this sandbox's image`;
    return { ...result, outcome: { ...outcome, message } };
  } finally {
    // Without the job's signal, which may have ended it. A left-over file matters less than the outcome.
    await files.remove(path, { missingOk: true }).catch(() => {});
  }
}

async function writeSource(path: string, request: RequestOf<"code">, context: RunContext): Promise<void> {
  const { sandbox, signal } = context;
  try {
    await sandbox.files.write(path, request.source, {
      mode: 0o600,
      parents: false,
      mustNotExist: true,
      signal,
    });
  } catch (error) {
    if (error instanceof FileRefusal && (error.code === "not-found" || error.code === "not-a-directory"))
      throw new Refusal(error.code, `no such directory to run in: ${request.cwd}`);
    throw error;
  }
}
