export type { Redis } from "ioredis";
export type { RedisOptions, RedisRole } from "./connect.ts";
export { checkRedis, connectRedis, withoutPassword } from "./connect.ts";
export { countConnections } from "./connections.ts";
export { isPasswordRefusal, orRedisFull, redisFault, refusesWrites } from "./refusal.ts";
export type { ScriptOptions } from "./script.ts";
export { Script } from "./script.ts";
export type { Topology } from "./topology.ts";
export { topologyOf } from "./topology.ts";
