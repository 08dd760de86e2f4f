import { z } from "zod";
import { workspaceFilePath } from "./workspace-path.ts";

export const artifactId = z.string().regex(/^[A-Za-z0-9_-]{32}$/, { error: "it is not an artifact's id" });

/** A file that a job left for others. Its bytes are fetched by the id, until it expires. */
export const artifactRef = z.strictObject({
  id: artifactId,
  /** Relative to the workspace, without a leading slash. */
  path: workspaceFilePath,
  size: z.number().int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** By content; by name where the name cannot mislead. Text is UTF-8. */
  mime: z.string().max(127),
  expiresAtMs: z.number().int().min(0),
});
export type ArtifactRef = z.infer<typeof artifactRef>;

const artifactRefusals = ["quota", "too-large", "too-many", "not-a-file", "unreadable", "not-kept"] as const;

/** A file that was not kept, and why. It does not change the job's outcome. */
export const artifactRefusal = z.strictObject({
  path: z.string(),
  code: z.enum(artifactRefusals),
  reason: z.string(),
});
export type ArtifactRefusal = z.infer<typeof artifactRefusal>;

/** The conversation: persisted files belong to an agent and a session within their sandbox. */
export interface Conversation {
  readonly tenant: string;
  readonly agent: string | undefined;
  readonly session: string;
  readonly jobId: string;
}
