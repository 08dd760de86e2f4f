import { Fault, type FileEntry, FileRefusal, type WorkspaceUsage } from "@berth/protocol";
import type { CallOptions, GlobOptions, Listing, ListOptions } from "../port.ts";
import type { ExecHost } from "./exec-host.ts";
import { compileGlob, type Glob, GlobError } from "./glob-match.ts";
import { scriptFailure, scriptPath } from "./script-failure.ts";
import { Enough, runScript } from "./script-run.ts";
import { EntryReader, TokenReader } from "./walk-reader.ts";
import { entryBatchScript, listScript, usageScript } from "./walk-scripts.ts";

export const defaultMaxItems = 10_000;
/** Entries a glob looks at before it gives up and says that there is more. */
const maxLookedAt = 200_000;
const anyDepth = 1_000_000;
const maxPatterns = 512;

export function listFiles(host: ExecHost, path: string, options: ListOptions): Promise<Listing<FileEntry>> {
  const depth = options.recursive ? Math.min(options.maxDepth ?? anyDepth, anyDepth) : 1;
  return walk(host, "list", path, { ...options, depth, wanted: () => true });
}

export async function globFiles(
  host: ExecHost,
  patterns: readonly string[],
  options: GlobOptions,
): Promise<Listing<FileEntry>> {
  const globs = compileGlobs(patterns, options.dot ?? false);
  return walk(host, "glob", options.base ?? "", {
    ...options,
    depth: Math.min(anyDepth, Math.max(1, ...globs.map((glob) => glob.depth))),
    wanted: (path, isDirectory) => globs.some((glob) => glob.matches(path, isDirectory)),
  });
}

export function compileGlobs(patterns: readonly string[], dot: boolean): Glob[] {
  if (patterns.length > maxPatterns) throw badPattern(`more than ${maxPatterns} of them`);
  return patterns.map((pattern) => {
    try {
      return compileGlob(pattern, dot);
    } catch (error) {
      if (error instanceof GlobError) throw badPattern(error.message);
      throw error;
    }
  });
}

export function badPattern(detail: string): FileRefusal {
  return new FileRefusal("bad-pattern", `the pattern cannot be used: ${detail}`);
}

interface Walk extends CallOptions {
  readonly depth: number;
  readonly maxItems?: number;
  readonly wanted: (path: string, isDirectory: boolean) => boolean;
}

async function walk(
  host: ExecHost,
  operation: string,
  path: string,
  options: Walk,
): Promise<Listing<FileEntry>> {
  const { maxItems = defaultMaxItems, wanted, depth, signal } = options;
  const base = scriptPath(path).whole;
  let items: FileEntry[] = [];
  let lookedAt = 0;
  const begin = () => {
    items = [];
    lookedAt = 0;
    const entries = new EntryReader((entry) => {
      lookedAt++;
      if (wanted(entry.path, entry.type === "directory")) {
        if (items.length >= maxItems) throw new Enough();
        items.push({ ...entry, path: base === "" ? entry.path : `${base}/${entry.path}` });
      }
      if (lookedAt >= maxLookedAt && lookedAt > maxItems) throw new Enough();
    });
    return new TokenReader((token) => entries.take(token));
  };
  let reader = begin();
  const answer = await runScript(host, {
    operation,
    script: listScript,
    args: [base, String(depth), entryBatchScript],
    signal,
    repeat: () => {
      reader = begin();
    },
    isWhole: () => reader.ended,
    onBody: (bytes) => reader.push(bytes),
  });
  if (answer.kind === "no") throw scriptFailure(operation, path, answer);
  if (!answer.enough && !reader.ended) throw cutOff(operation);
  return { items: items.sort((a, b) => compare(a.path, b.path)), truncated: answer.enough };
}

export function cutOff(operation: string): Fault {
  return new Fault("file-operation-failed", {
    operation,
    code: "interrupted",
    detail: "the walk was cut off",
  });
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `du` for the bytes, so hard links count once; directories that the tenant made unreadable to itself are not seen. */
export async function workspaceUsage(
  host: ExecHost,
  options: CallOptions & { readonly maxEntries: number },
): Promise<WorkspaceUsage> {
  let entries = 0;
  let open: Map<string, number> | undefined;
  const begin = () => {
    entries = 0;
    open = undefined;
    return new TokenReader((token) => {
      const text = token.toString("latin1");
      if (text === "open") open = new Map();
      else if (open === undefined) {
        entries += Number(text) || 0;
        if (entries > options.maxEntries) throw new Enough();
      } else {
        const [, blocks, device, inode] = text.split(" ");
        open.set(`${device} ${inode}`, (Number(blocks) || 0) * 512);
      }
    });
  };
  let reader = begin();
  const answer = await runScript(host, {
    operation: "usage",
    script: usageScript,
    signal: options.signal,
    repeat: () => {
      reader = begin();
    },
    isWhole: () => reader.ended,
    onBody: (bytes) => reader.push(bytes),
  });
  if (answer.kind === "no") throw scriptFailure("usage", "", answer);
  if (!answer.enough && !reader.ended) throw cutOff("usage");
  const [kilobytes = "0", device = ""] = answer.words;
  const unlinkedBytes = [...(open ?? [])]
    .filter(([file]) => file.startsWith(`${device} `))
    .reduce((sum, [, bytes]) => sum + bytes, 0);
  return {
    bytes: (Number(kilobytes) || 0) * 1024 + unlinkedBytes,
    entries: Math.min(entries, options.maxEntries),
    unlinkedBytes,
    partial: answer.enough,
  };
}
