import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test as base, describe, expect } from "vitest";
import { HttpDoor } from "../src/door/http-door.ts";

const missing = { code: "not-found", detail: "there is no such secret" };

/** What a gateway answers to each DELETE in turn, and then always 404. */
const test = base.extend<{ removed: (...answers: RequestListener[]) => Promise<boolean> }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  removed: async ({}, use) => {
    const left: RequestListener[] = [];
    const server = createServer((request, response) => {
      if (request.method !== "DELETE") return void response.end("{}");
      const answer = left.shift();
      if (answer) answer(request, response);
      else
        response.writeHead(404, { "content-type": "application/problem+json" }).end(JSON.stringify(missing));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const door = await HttpDoor.open({ url, key: undefined, outageMs: 10_000 });
    await use(async (...answers) => {
      left.push(...answers);
      const was = await door.secrets.remove("acme", "TOKEN");
      expect(left).toEqual([]);
      return was;
    });
    await door.close();
    server.close();
  },
});

const breaks: RequestListener = (request) => void request.socket.resetAndDestroy();
const problem =
  (status: number, code: string, headers = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(status, headers).end(JSON.stringify({ code, detail: "no" }));

describe("a removal that is answered with 404", () => {
  test("a removal answered with 404 removed nothing when it was sent once", async ({ removed }) => {
    expect(await removed()).toBe(false);
  });

  test("a removal answered with 404 counts as done when the first connection had broken", async ({
    removed,
  }) => {
    expect(await removed(breaks)).toBe(true);
  });

  test("a removal answered with 404 counts as done when the gateway lost its Redis during the first try", async ({
    removed,
  }) => {
    expect(await removed(problem(503, "redis-unreachable"))).toBe(true);
    expect(await removed(problem(503, "redis-unreachable", { "retry-after": "0" }))).toBe(true);
  });

  test("a removal answered with 404 removed nothing when the first try was only asked to wait", async ({
    removed,
  }) => {
    expect(await removed(problem(429, "rate-limited", { "retry-after": "0" }))).toBe(false);
    expect(await removed(problem(503, "unavailable", { "retry-after": "0" }))).toBe(false);
  });
});
