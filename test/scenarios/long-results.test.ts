import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { fleetTest as test } from "../support/gateway.ts";

const command = "seq 1 40000";
const printed = Array.from({ length: 40_000 }, (_, index) => `${index + 1}\n`).join("");

describe("output of 229 KB", () => {
  test("output of 229 KB reaches await, a batch, an HTTP answer and a batch over HTTP as a whole, and results as an excerpt", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const berth = fleet.client();
    const order = { tenant: "acme", request: { kind: "exec", command } as const };
    expect((await berth.tenant("acme").exec(command)).stdout).toBe(printed);
    for await (const { result } of berth.batch([order], { id: "long" }).results())
      expect(result.value.stdout).toBe(printed);
    const answer = await gateway.call("POST", "/v1/jobs?wait=30", { body: order });
    expect(answer.body.result.value.stdout).toBe(printed);
    const made = await gateway.call("POST", "/v1/batches", { body: { jobs: [order] } });
    const lines = await (await gateway.fetch("GET", `/v1/batches/${made.body.id}/results`)).text();
    expect(JSON.parse(lines).result.value.stdout).toBe(printed);
    const results = await fleet.redis.connect().xrange(redisKeys.results, "-", "+");
    expect(results).toHaveLength(4);
    for (const [, fields] of results) expect(fields.join("").length).toBeLessThan(33 * 1024);
  });
});
