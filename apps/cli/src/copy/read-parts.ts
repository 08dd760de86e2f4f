import { createHash } from "node:crypto";
import { maxInlineBytes } from "@berth/protocol";
import { Complaint } from "../complaint.ts";
import type { SendJob } from "./write-parts.ts";

/**
 * Reads a file of any length with one job per megabyte. Throws at the end if the file changed meanwhile, since the bytes
 * then mix two versions.
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
    // One job reads one version of the file. A persisted file lies outside the workspace and never changes.
    if (offset === bytes.length || value.persisted !== undefined) return;
    const now = await send({ kind: "stat", path, hash: true });
    if (now.value.sha256 === hash.digest("hex")) return;
    throw new Complaint(`${path} changed while it was read`, {
      code: "changed",
      advice: ["read it again when nothing writes to it"],
    });
  }
}
