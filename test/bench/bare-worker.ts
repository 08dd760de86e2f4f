/** A BullMQ worker as its documentation shows it, for failover.ts: `bare-worker.ts REDIS_SOCKET QUEUE hold|finish`. */
import { Worker } from "bullmq";

const [path = "", queue = "", what = ""] = process.argv.slice(2);
const worker = new Worker(
  queue,
  async () => {
    if (what === "hold") await new Promise(() => setInterval(() => {}, 1_000));
  },
  { connection: { path, maxRetriesPerRequest: null } },
);
worker.on("active", () => process.stdout.write("active\n"));
worker.on("ready", () => process.stdout.write("ready\n"));
