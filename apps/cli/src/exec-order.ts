import { isUtf8 } from "node:buffer";
import { hash, randomBytes } from "node:crypto";
import type { JobOrder } from "./door.ts";

export interface ExecWish {
  readonly env: Readonly<Record<string, string>>;
  readonly artifacts: readonly string[];
  readonly cwd: string | undefined;
  readonly timeoutMs: number | undefined;
  /** Bytes that go with the job, or a file of the workspace that is there already. */
  readonly stdin: Buffer | { readonly path: string } | undefined;
  /** Tenant, session and the like: jobs of one place run one after another. */
  readonly place?: object;
}

type ExecRequest = Extract<JobOrder["request"], { kind: "exec" }>;

/** Reads stdin from a file and removes its name before it becomes the command; the open file stays. */
const fromFile = 'exec <"$1" && rm -f -- "$1" && shift && exec "$@"';
/** As JSON, control characters take six bytes; text that grows beyond this is sent as bytes. */
const mostTextBytes = 12 * 1024 * 1024;

/** One word is a shell's line; several are a program and its arguments. */
export function execOrder(words: readonly string[], wish: ExecWish): Pick<JobOrder, "request"> {
  const [only = ""] = words;
  const argv = words.length === 1 ? undefined : [...words];
  const { stdin } = wish;
  if (stdin && !Buffer.isBuffer(stdin))
    return { request: readingFile(argv ?? ["sh", "-c", only], wish, stdin.path) };
  // A request is JSON, and its stdin text. Bytes that are not take the way of a file.
  if (stdin && !isShortText(stdin)) return withFile(argv ?? ["sh", "-c", only], wish, stdin);
  const command = argv ? { argv } : { command: only };
  return { request: { ...command, ...rest(wish), ...(stdin ? { stdin: stdin.toString() } : {}) } };
}

/** Where stdin is put; hidden, and another for each command that may run at the same time. */
export function stdinPath(name = randomBytes(9).toString("base64url")): string {
  return `.berth-stdin-${name}`;
}

function isShortText(bytes: Buffer): boolean {
  return isUtf8(bytes) && JSON.stringify(bytes.toString()).length <= mostTextBytes;
}

function withFile(argv: readonly string[], wish: ExecWish, stdin: Buffer): Pick<JobOrder, "request"> {
  // The same command is the same request: under the same id it may be submitted again.
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
