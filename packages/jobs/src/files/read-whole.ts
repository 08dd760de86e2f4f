import type { FileContent } from "@berth/sandbox/port";
import { Refusal, type RunContext } from "../run-context.ts";

/** A file that is worked on in memory. */
export async function readWhole(
  path: string,
  maxBytes: number,
  { sandbox, signal }: RunContext,
): Promise<FileContent> {
  const content = await sandbox.files.read(path, { length: maxBytes, unmasked: true, signal });
  if (content.size > maxBytes) {
    throw new Refusal(
      "too-large",
      `${path} has ${content.size} bytes; at most ${maxBytes} can be edited at once`,
    );
  }
  return content;
}
