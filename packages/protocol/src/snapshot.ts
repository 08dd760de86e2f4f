import { z } from "zod";
import { named } from "./ids.ts";

/** Per tenant: two tenants may use the same name. */
export const snapshotName = named("a snapshot name").brand<"SnapshotName">();
export type SnapshotName = z.infer<typeof snapshotName>;

/** How a snapshot's files were made: as a file system snapshot, by sharing blocks, or by copying. */
export const snapshotMethod = z.enum(["btrfs", "reflink", "copy"]);
export type SnapshotMethod = z.infer<typeof snapshotMethod>;

/** A tenant's snapshot, as it is listed. */
export const snapshotView = z.strictObject({
  name: z.string(),
  sandbox: z.string().describe("the sandbox whose files it has"),
  size: z.number().int().min(0).describe("bytes of its files on disk"),
  count: z.number().int().min(0).describe("files, directories and links"),
  method: snapshotMethod.describe("how it was made"),
  createdAtMs: z.number().int(),
  expiresAtMs: z.number().int().exactOptional().describe("absent: it stays until it is removed"),
  host: z.string().exactOptional().describe("whose disk has it; for admin keys"),
});
export type SnapshotView = Readonly<z.infer<typeof snapshotView>>;
