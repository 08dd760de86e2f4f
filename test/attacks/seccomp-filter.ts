import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const source = fileURLToPath(new URL("fixtures/seccomp-filters.c", import.meta.url));

interface Instruction {
  readonly code: number;
  readonly yes: number;
  readonly no: number;
  readonly value: number;
}
export type Filter = readonly Instruction[];

export interface SystemCall {
  readonly number: number;
  readonly arguments: readonly number[];
}

/** Reads the filters of any process of this machine, the oldest first. Needs root. */
export async function filterReader(folder: string): Promise<(pid: number) => Promise<Filter[]>> {
  const program = join(folder, "seccomp-filters");
  await run("cc", ["-O1", "-o", program, source]);
  return async (pid) => {
    const { stdout } = await run(program, [String(pid)], { timeout: 10_000 });
    return stdout.trim().split("\n").map(parsed);
  };
}

function parsed(line: string): Filter {
  return line.split(" ").map((text) => {
    const [code = 0, yes = 0, no = 0, value = 0] = text.split(",").map(Number);
    return { code, yes, no, value };
  });
}

const allowed = 0x7fff0000;

/** Whether the kernel would let the call through all of the filters. */
export function passes(filters: readonly Filter[], call: SystemCall, architecture: number): boolean {
  return filters.every((filter) => answerOf(filter, call, architecture) === allowed);
}

/** Runs a filter as the kernel does: the classic BPF machine, as far as seccomp programs use it. */
function answerOf(filter: Filter, call: SystemCall, architecture: number): number {
  const words = [
    ...[call.number, architecture, 0, 0],
    ...Array.from({ length: 6 }, (_, at) => [(call.arguments[at] ?? 0) >>> 0, 0]).flat(),
  ];
  let accumulator = 0;
  for (let at = 0; at < filter.length; at++) {
    const { code, yes, no, value } = filter[at] as Instruction;
    if (code === 0x06) return value;
    if (code === 0x20) accumulator = words[value / 4] ?? 0;
    else if (code === 0x54) accumulator = (accumulator & value) >>> 0;
    else if (code === 0x05) at += value;
    else if ((code & 0x07) === 0x05) at += holds(code, accumulator, value) ? yes : no;
    else throw new Error(`an instruction that no seccomp filter here had before: 0x${code.toString(16)}`);
  }
  throw new Error("the filter ends without an answer");
}

function holds(code: number, accumulator: number, value: number): boolean {
  if (code === 0x15) return accumulator === value;
  if (code === 0x25) return accumulator > value;
  if (code === 0x35) return accumulator >= value;
  if (code === 0x45) return (accumulator & value) !== 0;
  throw new Error(`a jump that no seccomp filter here had before: 0x${code.toString(16)}`);
}
