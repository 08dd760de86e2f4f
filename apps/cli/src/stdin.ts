import { Complaint } from "./complaint.ts";
import type { Context } from "./context.ts";

/** What one job takes of stdin; base64 of it must fit into a request. */
const mostBytes = 36 * 1024 * 1024;

/** All of stdin, to its end. A job's request is sent as a whole. */
export async function readStdin({ terminal }: Context): Promise<Buffer> {
  if (process.stdin.isTTY) terminal.note("berth: reading stdin; Ctrl-D ends it");
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBytes)
      throw new Complaint(`stdin is larger than the ${mostBytes} bytes that go with one job`, {
        advice: ["berth write TENANT big.bin < FILE, then: berth exec TENANT -- 'command < big.bin'"],
      });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
