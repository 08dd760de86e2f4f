import { isUtf8 } from "node:buffer";
import { hash, randomBytes } from "node:crypto";
import type { JobOrder } from "./door.ts";

export interface ExecWish {
  readonly env: Readonly<Record<string, string>>;
  readonly artifacts: readonly string[];
  readonly cwd: string | undefined;
  readonly timeoutMs: number | undefined;
  /** Bytes to send with the job, or an existing file of the workspace. */
  readonly stdin: Buffer | { readonly path: string } | undefined;
  /** Tenant, session and so on. Jobs of one place run one after another. */
  readonly place?: object;
}

type ExecRequest = Extract<JobOrder["request"], { kind: "exec" }>;

/** Opens the stdin file and unlinks it before it becomes the command; the open file stays readable. */
const fromFile = 'exec <"$1" && rm -f -- "$1" && shift && exec "$@"';
/** JSON takes six bytes for a control character; text that would grow beyond this is sent as bytes. */
const mostTextBytes = 12 * 1024 * 1024;

/** One word is a shell command line; several are a program and its arguments. */
export function execOrder(words: readonly string[], wish: ExecWish): Pick<JobOrder, "request"> {
  const [only = ""] = words;
  const argv = words.length === 1 ? undefined : [...words];
  const { stdin } = wish;
  if (stdin && !Buffer.isBuffer(stdin))
    return { request: readingFile(argv ?? ["sh", "-c", only], wish, stdin.path) };
  // A request's stdin is text, because the request is JSON. Other bytes go through a file.
  if (stdin && !isShortText(stdin)) return withFile(argv ?? ["sh", "-c", only], wish, stdin);
  const command = argv ? { argv } : { command: only };
  return { request: { ...command, ...rest(wish), ...(stdin ? { stdin: stdin.toString() } : {}) } };
}

/** Where stdin is written: a hidden file, with a name of its own for each concurrent command. */
export function stdinPath(name = randomBytes(9).toString("base64url")): string {
  return `.berth-stdin-${name}`;
}

function isShortText(bytes: Buffer): boolean {
  return isUtf8(bytes) && JSON.stringify(bytes.toString()).length <= mostTextBytes;
}

function withFile(argv: readonly string[], wish: ExecWish, stdin: Buffer): Pick<JobOrder, "request"> {
  // The name depends on the content, so resubmitting a command under the same id sends an identical request.
  const whole = JSON.stringify([wish.place, argv, rest(wish), hash("sha256", stdin)]);
  const path = stdinPath(hash("sha256", whole, "base64url").slice(0, 12));
  return {
    request: {
      kind: "steps",
      steps: [
        { kind: "write", path, content: stdin.toString("base64"), encoding: "base64" },
        readingFile(argv, wish, path),
      ],
    },
  };
}

function readingFile(argv: readonly string[], wish: ExecWish, path: string): ExecRequest {
  return { argv: ["sh", "-c", fromFile, "sh", `/workspace/${path}`, ...argv], ...rest(wish) };
}

function rest({
  env,
  artifacts,
  cwd,
  timeoutMs,
}: ExecWish): Pick<ExecRequest, "kind" | "env" | "cwd" | "limits" | "artifacts"> {
  return {
    kind: "exec",
    env: { ...env },
    ...(cwd === undefined ? {} : { cwd }),
    ...(timeoutMs === undefined ? {} : { limits: { timeoutMs } }),
    ...(artifacts.length === 0 ? {} : { artifacts: [...artifacts] }),
  };
}
