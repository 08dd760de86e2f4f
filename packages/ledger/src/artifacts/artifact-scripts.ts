import { redisKeys, sandboxKey } from "@berth/protocol";
import { Script } from "@berth/redis";
import { z } from "zod";
import type { FieldOf } from "../key-record.ts";
import type { artifactRecords } from "./records.ts";

/** The place of bytes that Redis itself holds. It equals no directory's id, since those are hexadecimal. */
export const inRedis = "redis";

const count = z.number().int().min(0);

const addReply = z.union([
  z
    .tuple([z.literal("added"), count, z.string(), z.string()])
    .transform(([answer, expiresAtMs, place, file]) => ({
      answer,
      expiresAtMs,
      place,
      file,
    })),
  z
    .tuple([z.literal("quota"), count, count])
    .transform(([answer, bytes, artifacts]) => ({ answer, bytes, artifacts })),
  z.tuple([z.literal("fenced"), count]).transform(([answer, epoch]) => ({ answer, epoch })),
  z.tuple([z.literal("swept")]).transform(([answer]) => ({ answer })),
  z.tuple([z.literal("changed")]).transform(([answer]) => ({ answer })),
  z.tuple([z.literal("too-many"), count]).transform(([answer, paths]) => ({ answer, paths })),
]);
export type AddAnswer = z.infer<typeof addReply>;

const dropReply = z.union([
  z.tuple([z.literal("dropped"), z.string()]).transform(([answer, file]) => ({ answer, file })),
  z.tuple([z.literal("kept")]).transform(([answer]) => ({ answer })),
  z.tuple([z.literal("fenced"), count]).transform(([answer, epoch]) => ({ answer, epoch })),
]);

export const addArtifact = new Script({
  name: "artifact-add",
  file: new URL("../../lua/artifact-add.lua", import.meta.url),
  parse: (reply) => addReply.parse(reply),
});

export const dropArtifact = new Script({
  name: "artifact-drop",
  file: new URL("../../lua/artifact-drop.lua", import.meta.url),
  parse: (reply) => dropReply.parse(reply),
});

const number = z.coerce.number().int().min(0);

/** An artifact as its hash has it. */
export const artifactRecord = z.object({
  path: z.string(),
  size: number,
  sha256: z.string(),
  mime: z.string(),
  expires: number,
  at: number,
  tenant: z.string(),
  key: z.string().pipe(sandboxKey),
  agent: z.string(),
  session: z.string(),
  job: z.string(),
  place: z.string(),
  file: z.string(),
} satisfies Record<FieldOf<typeof artifactRecords.artifact>, z.ZodType>);
export type ArtifactRecord = z.infer<typeof artifactRecord>;

/** The arguments of both scripts, in order. */
export function artifactKeys(
  id: string,
  of: Pick<ArtifactRecord, "tenant" | "key" | "agent" | "session" | "place" | "sha256">,
): string[] {
  return [
    redisKeys.artifact(id),
    redisKeys.artifactExpiry,
    redisKeys.artifactUsage,
    redisKeys.artifactBlob(of.place, of.sha256),
    redisKeys.artifactBytes(of.sha256),
    redisKeys.artifactGarbage(of.place),
    redisKeys.persisted(of.key, of.tenant, of.agent, of.session),
    redisKeys.conversations(of.key),
  ];
}
