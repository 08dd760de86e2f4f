import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { adminKey, type TestGateway, fleetTest as test } from "../support/gateway.ts";

const exec = (tenant: string, command: string) => ({ tenant, request: { kind: "exec", command } });

async function resultLines(gateway: TestGateway, id: string, query = "") {
  const response = await gateway.fetch("GET", `/v1/batches/${id}/results${query}`);
  const text = await response.text();
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

describe("batches over HTTP", () => {
  test("batches over HTTP run every order, report their progress, and give each result once", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const jobs = Array.from({ length: 40 }, (_, index) =>
      exec(`tenant-${index % 2}`, `echo ${index}; exit $((${index} % 10 == 0))`),
    );
    const made = await gateway.call("POST", "/v1/batches", { body: { jobs } });
    expect(made).toMatchObject({ status: 202, body: { submitted: 40, total: 40 } });
    const lines = await resultLines(gateway, made.body.id);
    expect(lines.map(({ position }) => position)).toEqual(lines.map((_, index) => index + 1));
    expect(lines.map(({ index }) => index).sort((a, b) => a - b)).toEqual(jobs.map((_, index) => index));
    for (const { index, result } of lines) expect(result.value.stdout).toBe(`${index}\n`);
    const over = await gateway.call("GET", `/v1/batches/${made.body.id}`);
    expect(over.body).toMatchObject({ state: "finished", finished: 40, failed: 4, refused: 0 });
    expect(await resultLines(gateway, made.body.id, "?after=38&follow=false")).toEqual(lines.slice(38));
    expect((await gateway.call("GET", "/v1/batches")).body.batches).toMatchObject([{ id: made.body.id }]);
  });

  test("an upload sent again after Redis forgot its jobs runs none that had ended", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const headers = { "content-type": "application/x-ndjson", "idempotency-key": "yesterday" };
    const body = (count: number) =>
      Array.from({ length: count }, (_, index) =>
        JSON.stringify(exec("acme", `echo ${index} | tee -a ledger`)),
      ).join("\n");
    const { body: batch } = await gateway.call("POST", "/v1/batches", { body: body(2), headers });
    await resultLines(gateway, batch.id);
    const redis = fleet.redis.connect();
    // A day later.
    for (const id of [0, 1].map((index) => `${batch.id}-${index}`)) {
      await redis.del(redisKeys.job(sandboxKey.parse("acme"), id));
      await redis.del(redisKeys.sandboxOf(id));
    }
    await gateway.call("POST", "/v1/batches", { body: body(3), headers });
    const ledger = () => gateway.call("POST", "/v1/jobs?wait=30", { body: exec("acme", "cat ledger") });
    expect((await ledger()).body.result.value.stdout).toBe("0\n1\n2\n");
  });

  test("an invalid line ends as refused, and an upload sent again runs nothing twice", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const orders = [
      exec("acme", "echo 0 | tee -a ledger"),
      "{broken",
      { tenant: "acme", request: { kind: "nope" } },
      exec("acme", "echo 3 | tee -a ledger"),
      { ...exec("acme", "true"), id: "mine" },
    ];
    const body = `${orders.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\r\n")}\n\n`;
    const headers = { "content-type": "application/x-ndjson", "idempotency-key": "nightly-7" };
    const first = await gateway.call("POST", "/v1/batches", { body, headers });
    expect(first.body).toMatchObject({ total: 5, refused: 3 });
    const again = await gateway.call("POST", "/v1/batches", { body, headers });
    expect(again.body.id).toBe(first.body.id);
    const lines = await resultLines(gateway, first.body.id);
    const byIndex = new Map(lines.map((line) => [line.index, line]));
    expect(lines).toHaveLength(5);
    expect(byIndex.get(1).refused).toContain("JSON");
    expect(byIndex.get(2).refused).toContain("request");
    expect(byIndex.get(4).refused).toContain("id");
    expect(byIndex.get(3).result.value.stdout).toBe("3\n");
    const ledger = await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("acme", "cat ledger") });
    expect(ledger.body.result.value.stdout).toBe("0\n3\n");
  });

  test("an order of a batch whose job id belongs to another sandbox is refused, and the others go on", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const upload = (...tenants: string[]) =>
      gateway.call("POST", "/v1/batches", {
        body: tenants.map((tenant) => `${JSON.stringify(exec(tenant, "true"))}\n`).join(""),
        headers: { "content-type": "application/x-ndjson", "idempotency-key": "nightly-8" },
      });
    expect((await upload("acme")).body).toMatchObject({ total: 1, refused: 0 });
    const again = await upload("globex", "acme");
    expect(again).toMatchObject({ status: 202, body: { submitted: 2, refused: 1 } });
    const [line] = await resultLines(gateway, again.body.id, "?follow=false");
    expect(line).toMatchObject({
      index: 0,
      refused: "another job has this id; ids are remembered for a day",
    });
  });

  test("batches over HTTP come in parts: one that is sent again runs nothing twice, and a gap is refused", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const headers = { "content-type": "application/x-ndjson", "idempotency-key": "in-parts" };
    const send = (query: string, ...numbers: number[]) =>
      gateway.call("POST", `/v1/batches?${query}`, {
        body: numbers
          .map((n) => JSON.stringify({ ...exec("acme", `echo ${n} | tee -a ledger`), labels: { n: `${n}` } }))
          .join("\n"),
        headers,
      });
    expect((await send("from=0&more=true", 0, 1)).body).toMatchObject({ state: "uploading", submitted: 2 });
    expect((await send("from=0&more=true", 0, 1)).body).toMatchObject({ state: "uploading", submitted: 2 });
    expect((await send("from=3", 3)).body).toMatchObject({ code: "conflict" });
    const { body: batch } = await send("from=1", 1, 2);
    expect(batch).toMatchObject({ total: 3, submitted: 3 });
    const lines = await resultLines(gateway, batch.id);
    expect(lines.map(({ tenant, session, result }) => [tenant, session, result.labels.n])).toEqual([
      ["acme", "main", "0"],
      ["acme", "main", "1"],
      ["acme", "main", "2"],
    ]);
    expect(lines[0].result).toMatchObject({ worker: "worker-1", host: expect.any(String) });
    const { queuedAtMs, startedAtMs, finishedAtMs } = lines[0].result.timing;
    expect([queuedAtMs, startedAtMs, finishedAtMs].sort((a, b) => a - b)).toEqual([
      queuedAtMs,
      startedAtMs,
      finishedAtMs,
    ]);
    const ledger = await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("acme", "cat ledger") });
    expect(ledger.body.result.value.stdout).toBe("0\n1\n2\n");
    const named = await gateway.call("GET", "/v1/batches?key=in-parts");
    expect(named.body.batches).toMatchObject([{ id: batch.id, state: "finished" }]);
    expect((await gateway.call("GET", "/v1/batches?key=other")).body.batches).toEqual([]);
  });

  test("batches over HTTP are cancelled as a whole, what waits and what runs", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const jobs = Array.from({ length: 20 }, () => exec("acme", "sleep 60"));
    const { id } = (await gateway.call("POST", "/v1/batches", { body: { jobs } })).body;
    expect((await gateway.call("DELETE", `/v1/batches/${id}`)).status).toBe(202);
    const lines = await resultLines(gateway, id);
    expect(lines.map(({ result }) => result.outcome.kind)).toEqual(jobs.map(() => "cancelled"));
    expect((await gateway.call("DELETE", `/v1/batches/${id}`)).status).toBe(200);
  });

  test("batches over HTTP take any number of lines without growing", async ({ gateways }) => {
    // Held lines would need 300 MB of it. Without a ceiling the collector lets garbage grow as it likes.
    const gateway = await gateways.start({ NODE_OPTIONS: "--max-old-space-size=192" });
    const count = 5_000;
    const padding = "x".repeat(60_000);
    const rssMb = async () => {
      const status = await readFile(`/proc/${gateway.process.pid}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    };
    let halfWay = 0;
    async function* lines() {
      for (let index = 0; index < count; index++) {
        if (index === count / 2) halfWay = await rssMb();
        const request = { kind: "exec", command: `echo ${index} # ${padding}` };
        yield `${JSON.stringify({ tenant: `t${index % 50}`, request })}\n`;
      }
    }
    const response = await fetch(`${gateway.url}/v1/batches`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/x-ndjson" },
      body: Readable.toWeb(Readable.from(lines())) as ReadableStream,
      duplex: "half",
    } as RequestInit);
    expect(await response.json()).toMatchObject({ total: count, submitted: count, refused: 0 });
    // Another 150 MB went through since.
    expect((await rssMb()) - halfWay).toBeLessThan(100);
  }, 240_000);

  test("batches over HTTP call a signed webhook at their end, and again until it answers 2xx", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const calls: { headers: Record<string, unknown>; body: string }[] = [];
    const receiver = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => {
        calls.push({ headers: request.headers, body });
        response.writeHead(calls.length === 1 ? 500 : 204).end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    try {
      const gateway = await gateways.start({ BERTH_WEBHOOK_ALLOW: "127.0.0.0/8" });
      const webhook = `http://localhost:${(receiver.address() as AddressInfo).port}/hook`;
      const { id } = (
        await gateway.call("POST", "/v1/batches", { body: { jobs: [exec("acme", "true")], webhook } })
      ).body;
      await expect.poll(() => calls.length, { timeout: 30_000 }).toBe(2);
      const { secret } = (await gateway.call("GET", "/v1/webhooks/secret")).body;
      for (const { headers, body } of calls) {
        const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
        const key = Buffer.from(secret.replace("whsec_", ""), "base64");
        expect(headers["webhook-signature"]).toBe(
          `v1,${createHmac("sha256", key).update(signed).digest("base64")}`,
        );
        expect(JSON.parse(body)).toMatchObject({
          type: "batch.finished",
          data: { id, finished: 1, failed: 0 },
        });
      }
      await expect
        .poll(async () => (await gateway.call("GET", `/v1/batches/${id}`)).body.webhook)
        .toMatchObject({ state: "delivered", tries: 2 });
    } finally {
      receiver.close();
    }
  });
});
