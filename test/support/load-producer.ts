/**
 * A producer of its own, to be killed: hands a planned load over without waiting in between, and says which jobs were accepted,
 * one line each. Arguments: address of Redis, then the load's options as JSON.
 */
import { Berth } from "@berth/client";
import { plannedLoad } from "./load.ts";

const [, , redis = "", options = "{}"] = process.argv;
const berth = new Berth({ redis });
let index = 0;
for (const { order } of plannedLoad(JSON.parse(options))) {
  const position = index++;
  const accepted = berth.submit(order).enqueued();
  void accepted.then(({ id, key }) => process.stdout.write(`${JSON.stringify({ position, id, key })}\n`));
  if (index % 20 === 0) await accepted;
}
