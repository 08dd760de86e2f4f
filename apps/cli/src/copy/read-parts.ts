import { createHash } from "node:crypto";
import { maxInlineBytes } from "@berth/protocol";
import { Complaint } from "../complaint.ts";
import type { SendJob } from "./write-parts.ts";

/**
 * The bytes of a file of any length, a job for each megabyte. A file that changes on the way makes it throw at the end,
 * since what was given is then halves of two.
 */
export async function* readInParts(send: SendJob, path: string): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  let offset = 0;
  for (;;) {
    const { value } = await send({ kind: "read", path, as: "bytes", offset, bytes: maxInlineBytes });
    const bytes = Buffer.from(value.content ?? "", "base64");
    hash.update(bytes);
    offset += bytes.length;
    yield bytes;
    if (value.truncated && bytes.length > 0) continue;
    // One job reads one state of the file. What the conversation persisted is not the workspace's, and does not change.
    if (offset === bytes.length || value.persisted !== undefined) return;
    const now = await send({ kind: "stat", path, hash: true });
    if (now.value.sha256 === hash.digest("hex")) return;
    throw new Complaint(`${path} changed while it was read`, {
      code: "changed",
      advice: ["read it again when nothing writes to it"],
    });
  }
}
