// Mistakes of a program without types. Prints one line of JSON for each: what was thrown, and how.
//   node --conditions=@berth/source mistakes.mjs <redis>
import { Berth } from "@berth/client";
import { isFault } from "@berth/protocol";

const berth = new Berth({ redis: process.argv[2] });
const acme = berth.tenant("acme");
const request = { kind: "exec", command: "true" };

const mistakes = {
  "tenant with a line feed": () => berth.tenant("Bad\nName"),
  "tenant that is reserved": () => berth.tenant("shared"),
  "order's tenant reserved": () => berth.submit({ tenant: "shared", request }),
  "tenant missing": () => berth.tenant(),
  "tenant a number": () => berth.tenant(7),
  "no address of Redis": () => new Berth({}),
  "order missing": () => berth.submit(),
  "order's tenant": () => berth.submit({ tenant: "Bad Name ", request }),
  session: () => acme.exec("true", { session: "Bad Session " }),
  agent: () => acme.exec("true", { agent: "", scope: "agent" }),
  profile: () => acme.exec("true", { profile: 5 }),
  pool: () => acme.exec("true", { pool: "Bad Pool" }),
  "job's id": () => acme.exec("true", { id: "a:b" }),
  "job's id all digits": () => acme.exec("true", { id: "42" }),
  "job's id of the queue's own": () => acme.exec("true", { id: "wait" }),
  "job's id of a redriven job": () => acme.exec("true", { id: "nightly-redrive-1" }),
  "job's id of a scheduled run": () => acme.exec("true", { id: "nightly@1731880000000" }),
  "job's id of a tenant's own": () => acme.exec("true", { id: "globex.build" }),
  delay: () => acme.exec("true", { delayMs: -1 }),
  "command missing": () => acme.exec(),
  "content missing": () => acme.write("a"),
  "files missing": () => acme.copy(),
  "archive neither in nor out": () => acme.archive("sideways"),
  "archive missing": () => acme.archive("in"),
  "sandboxes of a bad tenant": () => berth.sandboxes({ tenant: "Bad Name " }),
  "limit of sandboxes": () => berth.sandboxes({ limit: "many" }),
  "worker to drain": () => berth.drain("Bad Worker"),
  "worker to ping": () => berth.ping(),
  "batch's id": () => berth.batch([], { id: "a batch" }),
  "nothing in flight": () => berth.batch([], { id: "b", inFlight: 0 }),
  "consumer missing": () => berth.results("group", {}),
  schedule: () =>
    berth.schedules.put({ id: "Bad Schedule", everyMs: 1_000, order: { tenant: "acme", request } }),
  "event's id": async () => {
    for await (const _ of (await acme.exec("true").enqueued()).events("not an id"));
  },
};

for (const [what, make] of Object.entries(mistakes)) {
  let thrown;
  try {
    await make();
  } catch (error) {
    thrown = error;
  }
  const { name, code, retry, message } = thrown ?? {};
  process.stdout.write(`${JSON.stringify({ what, name, code, retry, message, fault: isFault(thrown) })}\n`);
}
await berth.close();
