import { redisKeys } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { type OfferPlace, offerQueueName } from "./offers.ts";

/** A worker that makes room renews its claim several times in this time. */
const goodForMs = 2_000;

const count = z.number().int().min(0);
const claimRoom = new Script({
  name: "claim-room",
  file: new URL("../../lua/claim-room.lua", import.meta.url),
  parse: (reply) => z.tuple([count, count]).parse(reply),
});

export interface Room {
  /** Offers of the place that wait. */
  readonly waiting: number;
  /** Sandboxes of this worker that were asked to make room for such offers and have not been replaced: lately, and all. */
  readonly lately: number;
  readonly all: number;
  /** Sandboxes of this worker that could make room. */
  readonly idle: number;
  readonly busy: number;
}

/** How many sandboxes this worker gives up now for a place's offers, so that all workers together give up as many as are needed. */
export async function makeRoomFor(
  redis: Redis,
  instance: string,
  place: OfferPlace,
  { waiting, lately, all, idle, busy }: Room,
): Promise<{ readonly idle: number; readonly busy: number }> {
  const args = [instance, waiting, lately, all, idle, busy, goodForMs];
  const [idleAsked, busyAsked] = await claimRoom.run(redis, [redisKeys.room(offerQueueName(place))], args);
  return { idle: idleAsked, busy: busyAsked };
}
