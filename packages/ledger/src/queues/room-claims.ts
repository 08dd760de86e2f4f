import { redisKeys } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { type OfferTarget, offerQueueName } from "./offers.ts";

/** A worker that makes room renews its claim several times in this time. */
const validMs = 2_000;
/** Of the busy sandboxes of one worker, so many are compared with those of other workers at one look. */
const comparedMost = 100;

const count = z.number().int().min(0);
const claimRoom = new Script({
  name: "claim-room",
  file: new URL("../../lua/claim-room.lua", import.meta.url),
  parse: (reply) => z.tuple([count, count]).parse(reply),
});

export interface Room {
  /** Offers of the target that wait. */
  readonly waiting: number;
  /** Sandboxes of this worker that were asked to make room for such offers and have not been replaced: lately, and all. */
  readonly lately: number;
  readonly all: number;
  /** Sandboxes of this worker that could make room: the idle ones. */
  readonly idle: number;
  /**
   * The busy ones, in the order in which they would: how many sandboxes the tenant of each would still hold, in the whole fleet, after
   * those before it. Falling.
   */
  readonly busy: readonly number[];
  /** False: another worker may have an idle one, so the busy ones are only announced. */
  readonly busyGo: boolean;
}

/**
 * How many sandboxes this worker gives up now for a target's offers, so that all workers together give up as many as are needed, idle
 * ones first, then those of the tenants that hold the most.
 */
export async function makeRoomFor(
  redis: Redis,
  instance: string,
  target: OfferTarget,
  { waiting, lately, all, idle, busy, busyGo }: Room,
): Promise<{ readonly idle: number; readonly busy: number }> {
  const counts = busy.slice(0, comparedMost).join(",");
  const args = [instance, waiting, lately, all, idle, validMs, busyGo ? "1" : "0", counts];
  const [idleAsked, busyAsked] = await claimRoom.run(redis, [redisKeys.room(offerQueueName(target))], args);
  return { idle: idleAsked, busy: busyAsked };
}
