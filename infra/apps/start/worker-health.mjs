/** Health check: exits with 0 if Redis has a recent heartbeat of the worker. */
import { readFileSync } from "node:fs";
import { redisKeys } from "@berth/protocol";
import { connectRedis } from "@berth/redis";
import { takeSecrets } from "./secrets.mjs";
import { workerIdFile } from "./worker-id-file.mjs";

const DEADLINE_MS = 5_000;

setTimeout(() => leave(1, "Redis did not answer"), DEADLINE_MS);
takeSecrets(process.env, ["REDIS_URL"]);
const worker = readFileSync(workerIdFile, "utf8");
const redis = connectRedis({ url: process.env.REDIS_URL || "redis://127.0.0.1:6379", role: "commands" });
const beats = await redis.exists(redisKeys.worker(worker));
leave(beats === 1 ? 0 : 1, beats === 1 ? `${worker} is alive` : `${worker} has not been heard of`);

function leave(code, sentence) {
  process.stdout.write(`${sentence}\n`);
  process.exit(code);
}
