import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { adminKey, type TestGateway, test } from "../support/gateway.ts";
import { raw } from "../support/raw-http.ts";

const exec = { tenant: "acme", request: { kind: "exec", command: "true" } };

async function job(gateway: TestGateway): Promise<string> {
  return (await gateway.call("POST", "/v1/jobs", { body: exec })).body.id;
}

async function streams(gateway: TestGateway): Promise<number> {
  return Number(/event_streams (\d+)/.exec((await gateway.call("GET", "/metrics")).body)?.[1]);
}

describe("abuse of event streams", () => {
  test("event streams are bounded for each key and each gateway, and a closed stream frees its place", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_STREAMS_PER_KEY: "3", BERTH_GATEWAY_STREAMS: "5" });
    const id = await job(gateway);
    const { token } = (
      await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant: "acme", name: "x" } })
    ).body;
    const leave = new AbortController();
    const open = (key: string) =>
      gateway.fetch("GET", `/v1/jobs/${id}/events`, { key, signal: leave.signal });
    const own = await Promise.all([open(token), open(token), open(token)]);
    expect(own.map(({ status }) => status)).toEqual([200, 200, 200]);
    const fourth = await gateway.call("GET", `/v1/jobs/${id}/events`, { key: token });
    expect(fourth).toMatchObject({ status: 429, body: { code: "too-many-streams" } });
    expect(fourth.headers.get("retry-after")).toBe("5");
    await Promise.all([open(adminKey), open(adminKey)]);
    expect((await gateway.call("GET", `/v1/jobs/${id}/events`)).status).toBe(429);
    leave.abort();
    await expect.poll(() => streams(gateway)).toBe(0);
    const again = new AbortController();
    expect((await gateway.fetch("GET", `/v1/jobs/${id}/events`, { signal: again.signal })).status).toBe(200);
    again.abort();
  });

  test("a key waits for a bounded number of jobs at once, and a refused request submits nothing", async ({
    gateways,
    redis,
  }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_STREAMS_PER_KEY: "3" });
    const leave = new AbortController();
    const waiting = gateway
      .fetch("POST", "/v1/jobs?wait=60", { body: [exec, exec], signal: leave.signal })
      .catch(() => undefined);
    const client = redis.connect();
    await expect.poll(() => client.zcard("berth:unfinished")).toBe(2);
    const refused = await gateway.call("POST", "/v1/jobs?wait=60", { body: [exec, exec] });
    expect(refused).toMatchObject({ status: 429, body: { code: "too-many-requests" } });
    expect(await client.zcard("berth:unfinished")).toBe(2);
    leave.abort();
    await waiting;
    await expect
      .poll(
        async () => (await gateway.call("POST", "/v1/jobs?wait=0.01", { body: [exec, exec, exec] })).status,
        { timeout: 30_000 },
      )
      .toBe(202);
  });

  test("an invalid event id is refused", async ({ gateways }) => {
    const gateway = await gateways.start();
    const id = await job(gateway);
    const garbage = [
      "x",
      "0",
      "-",
      "$",
      "*",
      "1-",
      "-1",
      "1-1-1",
      "1 1",
      "9".repeat(30),
      "99999999999999999999-1",
      "1-99999999999999999999",
      "('1-1",
      "1-1;",
      "%00",
    ];
    for (const given of garbage) {
      const headers = { "last-event-id": given };
      expect((await gateway.call("GET", `/v1/jobs/${id}/events`, { headers })).status, given).toBe(400);
      expect(
        (await gateway.call("GET", `/v1/jobs/${id}/events?after=${encodeURIComponent(given)}`)).status,
        given,
      ).toBe(400);
    }
    const largest = { "last-event-id": "18446744073709551615-18446744073709551615" };
    const leave = new AbortController();
    expect(
      (await gateway.fetch("GET", `/v1/jobs/${id}/events`, { headers: largest, signal: leave.signal }))
        .status,
    ).toBe(200);
    leave.abort();
  });

  test("a thousand listeners that come and go leave no stream and no connection to Redis behind", async ({
    gateways,
    redis,
  }) => {
    const gateway = await gateways.start();
    const ids = await Promise.all(Array.from({ length: 10 }, () => job(gateway)));
    const client = redis.connect();
    const connections = async () => ((await client.client("LIST")) as string).trim().split("\n").length;
    const before = await connections();
    for (let round = 0; round < 10; round++) {
      const leave = new AbortController();
      const opened = await Promise.all(
        Array.from({ length: 100 }, (_, index) =>
          gateway.fetch("GET", `/v1/jobs/${ids[index % 10]}/events`, { signal: leave.signal }),
        ),
      );
      expect(opened.every(({ status }) => status === 200)).toBe(true);
      leave.abort();
    }
    await expect.poll(() => streams(gateway)).toBe(0);
    expect(await connections()).toBeLessThanOrEqual(before + 1);
  });

  test("an event stream that its client never reads takes bounded memory", async ({ gateways, redis }) => {
    const gateway = await gateways.start();
    const id = await job(gateway);
    const client = redis.connect();
    const chunk = Buffer.alloc(256 * 1024, "x");
    for (let index = 0; index < 200; index++) {
      await client.xadd(`berth:{acme}:events:${id}`, "*", "t", "stdout", "d", chunk);
    }
    const { connect } = await import("node:net");
    const request = `GET /v1/jobs/${id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminKey}\r\n\r\n`;
    const sockets = Array.from({ length: 20 }, () => {
      const socket = connect(gateway.port, "127.0.0.1");
      socket.pause();
      socket.write(request);
      return socket;
    });
    await expect.poll(() => streams(gateway)).toBe(20);
    const { readFile } = await import("node:fs/promises");
    const rssMb = async () => {
      const status = await readFile(`/proc/${gateway.process.pid}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    };
    // All of it to all of them would be a gigabyte.
    let most = 0;
    for (let look = 0; look < 10; look++) {
      await gateway.call("GET", "/healthz");
      most = Math.max(most, await rssMb());
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(most).toBeLessThan(700);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => streams(gateway)).toBe(0);
  });
});

describe("a webhook that would reach inside", () => {
  test("webhooks are not sent to private, local and metadata addresses, by number or by name", async ({
    gateways,
    redis,
  }) => {
    let called = 0;
    const inside = createServer((_, response) => {
      called++;
      response.end();
    });
    await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
    const { port } = inside.address() as AddressInfo;
    try {
      const gateway = await gateways.start();
      const targets = [
        `127.0.0.1:${port}`,
        `localhost:${port}`,
        `[::1]:${port}`,
        `[::ffff:127.0.0.1]:${port}`,
        `0.0.0.0:${port}`,
        `2130706433:${port}`,
        `0x7f.1:${port}`,
        "169.254.169.254",
        "10.0.0.1",
        "[fd00::1]",
        "[fe80::1]",
        "[64:ff9b::a9fe:a9fe]",
        "192.168.1.1",
      ];
      const client = redis.connect();
      for (const target of targets) {
        const webhook = `http://${target}/latest/meta-data`;
        const { id } = (
          await gateway.call("POST", "/v1/batches", { body: { jobs: [{ nonsense: true }], webhook } })
        ).body;
        await expect
          .poll(async () => (await client.hget(redisKeys.batch(id), "webhookProblem")) ?? "", {
            timeout: 30_000,
          })
          .toBe("its address is not one that webhooks may reach");
      }
      expect(called).toBe(0);
      const bad = [
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://user:pass@example.com/",
        "javascript:1",
        "x",
        "http://",
      ];
      for (const webhook of bad) {
        expect(
          (await gateway.call("POST", "/v1/batches", { body: { jobs: [exec], webhook } })).status,
          webhook,
        ).toBe(400);
      }
    } finally {
      inside.close();
    }
  });
});

describe("a batch upload that means harm", () => {
  test("a batch upload with an endless line, a silent sender, endless garbage or a lost sender is ended", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({
      BERTH_GATEWAY_BODY_BYTES: "100000",
      BERTH_GATEWAY_BODY_MS: "1000",
    });
    const head = `POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminKey}\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const piece = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
    const endless = await raw(gateway.port, [head, ...Array(100).fill(piece("x".repeat(10_000)))], {
      pauseMs: 1,
    });
    expect(endless.status).toBe(413);
    const silent = await raw(gateway.port, [head, piece(`${JSON.stringify(exec)}\n`)]);
    expect(silent.status).toBe(408);
    expect(silent.ms).toBeLessThan(30_000);
    const garbage = await raw(gateway.port, [head, ...Array(100).fill(piece("nonsense\n".repeat(100)))], {
      pauseMs: 5,
    });
    expect(garbage.status).toBe(400);
    const leaver = await raw(gateway.port, [head, piece(`${JSON.stringify(exec)}\n`)], { maxMs: 300 });
    expect(leaver.status).toBe(0);
    expect((await gateway.call("GET", "/healthz")).status).toBe(200);
  });
});
