/** One tenant's flood from a process of its own, for fairness.ts: `flood.ts REDIS_URL COUNT`. Says `sent` when all are enqueued. */
import { Berth } from "@berth/client";

const [redis = "", count = "0"] = process.argv.slice(2);
const berth = new Berth({ redis });
const jobs = Array.from({ length: Number(count) }, (_, index) =>
  berth.tenant("flooder").exec("true", { session: `s${index % 8}` }),
);
await Promise.all(jobs.map((job) => job.enqueued()));
process.stdout.write("sent\n");
await Promise.all(jobs);
process.stdout.write("ended\n");
await berth.close();
