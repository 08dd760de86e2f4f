import { connect } from "node:net";
import { describe, expect } from "vitest";
import { adminKey, type TestGateway, test } from "../support/gateway.ts";
import { answersIn, raw } from "../support/raw-http.ts";

const auth = `Authorization: Bearer ${adminKey}\r\n`;

function head(method: string, path: string, more = ""): string {
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${more}`;
}

async function stillServes(gateway: TestGateway): Promise<void> {
  expect((await gateway.call("GET", "/healthz")).status).toBe(200);
}

/** Writes a body without end and reads nothing meanwhile. Gives the bytes that were taken, and the answer found afterwards. */
async function pour(port: number, head: string, bytes: number): Promise<{ sent: number; answer: string }> {
  const socket = connect(port, "127.0.0.1");
  socket.pause();
  const failed = new Promise<void>((resolve) =>
    socket.once("error", () => resolve()).once("close", () => resolve()),
  );
  let sent = 0;
  const piece = Buffer.alloc(256 * 1024, "x");
  socket.write(head);
  while (sent < bytes && !socket.destroyed) {
    await Promise.race([new Promise<void>((resolve) => socket.write(piece, () => resolve())), failed]);
    sent += piece.length;
  }
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk;
  });
  socket.resume();
  await failed;
  return { sent, answer };
}

describe("hostile requests", () => {
  test("a client that writes all of a refused body before it reads finds the answer, however it was refused", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_BODY_BYTES: "10000" });
    const bytes = 8 * 1024 * 1024;
    const length = `Content-Length: ${bytes}\r\n\r\n`;
    const json = "Content-Type: application/json\r\n";
    for (const [headers, status] of [
      [head("POST", "/v1/jobs", `${auth}${json}${length}`), 413],
      [head("POST", "/v1/jobs", `${json}${length}`), 401],
      [head("POST", "/v1/jobs", `${auth}Content-Type: text/csv\r\n${length}`), 415],
      [head("PUT", "/v1/jobs", `${auth}${json}${length}`), 405],
      [head("POST", "/v1/batches", `${auth}Content-Type: application/x-ndjson\r\n${length}`), 413],
    ] as const) {
      const { sent, answer } = await pour(gateway.port, headers, bytes);
      expect(sent, headers).toBe(bytes);
      expect(answer, headers).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    }
  });

  test("a refused body without end is cut off, and so is one that stops coming", async ({ gateways }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_BODY_BYTES: "10000" });
    const post = head("POST", "/v1/jobs", `${auth}Content-Type: application/json\r\n`);
    const mebibyte = 1024 * 1024;
    const endless = await pour(gateway.port, `${post}Content-Length: 1000000000000\r\n\r\n`, 512 * mebibyte);
    expect(endless.sent).toBeLessThan(256 * mebibyte);
    const stopped = await raw(gateway.port, `${post}Content-Length: 1000000\r\n\r\n{`, { maxMs: 30_000 });
    expect(stopped.status).toBe(413);
    expect(stopped.ms).toBeLessThan(20_000);
    await stillServes(gateway);
  });

  test("a body that is too large is refused before it is read, by its length or as it comes", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_BODY_BYTES: "10000" });
    const post = head("POST", "/v1/jobs", `${auth}Content-Type: application/json\r\n`);
    const claimed = await raw(gateway.port, `${post}Content-Length: 1000000000000\r\n\r\n{`);
    expect(claimed).toMatchObject({ status: 413 });
    const chunk = `1000\r\n${"x".repeat(4096)}\r\n`;
    const chunked = await raw(
      gateway.port,
      [`${post}Transfer-Encoding: chunked\r\n\r\n`, ...Array(50).fill(chunk)],
      {
        pauseMs: 1,
      },
    );
    expect(chunked.status).toBe(413);
    expect(chunked.ms).toBeLessThan(30_000);
    await stillServes(gateway);
  });

  test.for([
    ["/v1/jobs", "application/json"],
    ["/v1/batches", "application/json"],
    ["/v1/batches", "application/x-ndjson"],
  ] as const)(
    "bodies of %s as %s that are held back do not fill the memory: one key has only so much of it",
    async ([path, type], { gateways }) => {
      const gateway = await gateways.start({
        BERTH_GATEWAY_BODY_BYTES: "100000",
        BERTH_GATEWAY_BODIES_BYTES: "1000000",
      });
      const post = head("POST", path, `${auth}Content-Type: ${type}\r\nContent-Length: 100000\r\n\r\n`);
      const held = Array.from({ length: 10 }, () =>
        raw(gateway.port, [post, "x".repeat(90_000)], { maxMs: 2_000 }),
      );
      const answers = await Promise.all(held);
      expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(7);
      expect((await gateway.call("POST", "/v1/jobs", { body: "x".repeat(50_000) })).status).toBe(400);
    },
  );

  test("a batch may be larger than what one key may have in memory: its lines leave one by one", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_BODIES_BYTES: "4000000" });
    const request = { kind: "exec", command: "true", stdin: "x".repeat(20_000) };
    const line = (tenant: string) => `${JSON.stringify({ tenant, request })}\n`;
    const body = Array.from({ length: 150 }, (_, index) =>
      line(index % 2 === 0 ? "acme" : "Not A Name "),
    ).join("");
    const headers = { "content-type": "application/x-ndjson" };
    const answer = await gateway.call("POST", "/v1/batches", { body, headers });
    expect(answer).toMatchObject({ status: 202, body: { total: 150 } });
  });

  // Without a bound this kept the gateway busy for minutes.
  test("a body with a million things wrong is refused with the first hundred of them", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const steps = Array.from({ length: 1_000 }, () => ({}));
    const hostile = Array.from({ length: 1_000 }, () => ({
      tenant: "acme",
      request: { kind: "steps", steps },
    }));
    const jobs = await gateway.call("POST", "/v1/jobs", { body: hostile });
    expect(jobs.status).toBe(400);
    expect(jobs.body.problems).toHaveLength(100);
    expect(jobs.body.problems[99]).toMatch(/^0\.request\.steps\.99\.kind: the kind is missing/);
    await stillServes(gateway);
  });

  test("a job of more values than a job can need is refused before they are looked at", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const request = {
      kind: "steps",
      steps: Array.from({ length: 1_000 }, () => ({ kind: "exec", argv: Array(4_096).fill(0) })),
    };
    const one = await gateway.call("POST", "/v1/jobs", { body: { tenant: "acme", request } });
    expect(one).toMatchObject({
      status: 400,
      body: { problems: [expect.stringMatching(/^it has more than 100000 /)] },
    });
    const second = [
      { tenant: "acme", request: { kind: "list" } },
      { tenant: "acme", request },
    ];
    const listed = await gateway.call("POST", "/v1/jobs", { body: second });
    expect(listed.body.problems).toEqual([expect.stringMatching(/^1: it has more than 100000 values/)]);
  });

  test("a body that is not JSON, is not UTF-8, or sets a prototype is refused", async ({ gateways }) => {
    const gateway = await gateways.start();
    const bodies = [
      "",
      "{",
      "null",
      "[]",
      "42",
      '"x"',
      '{"request":{"kind":"exec","command":"true"},"tenant":"acme","__proto__":{"role":"admin"}}',
      '{"request":{"kind":"exec","command":"true"},"tenant":"acme","\\u005f\\u005fproto__":{}}',
      '{"request":{"kind":"exec","command":"true"},"tenant":"acme","constructor":{"prototype":{}}}',
      new Uint8Array([0x22, 0xff, 0xfe, 0x22]),
      "[".repeat(1_000_000),
      `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`,
    ];
    for (const body of bodies) {
      const answer = await gateway.call("POST", "/v1/jobs", {
        body,
        headers: { "content-type": "application/json" },
      });
      expect(answer.status, String(body).slice(0, 40)).toBe(400);
    }
    await stillServes(gateway);
  });

  test("a body of another type is refused: forms, text, compressed, and multipart", async ({ gateways }) => {
    const gateway = await gateways.start();
    const body = '{"tenant":"acme","request":{"kind":"exec","command":"true"}}';
    const types = [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/xml",
      "x",
    ];
    for (const type of types) {
      const answer = await gateway.call("POST", "/v1/jobs", { body, headers: { "content-type": type } });
      expect(answer, type).toMatchObject({ status: 415, body: { code: "unsupported-media-type" } });
    }
    const packed = await gateway.call("POST", "/v1/jobs", { body, headers: { "content-encoding": "gzip" } });
    expect(packed.status).toBe(415);
    const ndjson = await gateway.call("POST", "/v1/jobs", {
      body,
      headers: { "content-type": "application/x-ndjson" },
    });
    expect(ndjson.status).toBe(415);
  });

  test("headers that come slowly, and bodies that never end, lose their connection", async ({ gateways }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_HEADERS_MS: "1000", BERTH_GATEWAY_BODY_MS: "1000" });
    const drip = Array.from({ length: 100 }, (_, index) => `X-${index}: 1\r\n`);
    const slowHead = raw(gateway.port, ["GET /healthz HTTP/1.1\r\n", ...drip], { pauseMs: 100 });
    const post = head(
      "POST",
      "/v1/jobs",
      `${auth}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n`,
    );
    const slowBody = raw(gateway.port, [post, ...Array(100).fill("x")], { pauseMs: 100 });
    const silent = raw(gateway.port, post);
    const quietSocket = raw(gateway.port, "");
    for (const answer of [await slowHead, await slowBody, await silent]) {
      expect(answer.status).toBe(408);
      expect(answer.ms).toBeLessThan(30_000);
    }
    expect((await quietSocket).ms).toBeLessThan(30_000);
    await stillServes(gateway);
  });

  test("an ambiguous request (request smuggling) is refused, and never parsed as two", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const smuggled = "GET /v1/keys HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const post = `POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n${auth}Content-Type: application/json\r\n`;
    const attacks = {
      "both lengths": `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
      "chunked, then a length": `${post}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${smuggled}`,
      "two lengths": `${post}Content-Length: 0\r\nContent-Length: 46\r\n\r\n${smuggled}`,
      "two encodings": `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${smuggled}`,
      "an odd encoding": `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
      "a hidden encoding": `${post}Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
      "a signed length": `${post}Content-Length: +4\r\n\r\nnull${smuggled}`,
      "a folded header": `${post}X: a\r\n Content-Length: 4\r\n\r\n${smuggled}`,
      "a bare line feed": `${post}Content-Length: 0\nX: y\r\n\r\n${smuggled}`,
      "a NUL in a header": `${post}X: a\0b\r\n\r\n${smuggled}`,
      "a bad chunk size": `${post}Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n${smuggled}`,
    };
    for (const [name, bytes] of Object.entries(attacks)) {
      const answer = await raw(gateway.port, bytes, { maxMs: 3_000 });
      expect(answer.status, name).toBe(400);
      expect(answersIn(answer), name).toBe(1);
    }
    await stillServes(gateway);
  });

  test("a header that decides something is refused when it is given twice", async ({ gateways }) => {
    const gateway = await gateways.start();
    for (const name of [
      "Authorization: Bearer x",
      "Host: other",
      "Content-Type: text/plain",
      "Last-Event-ID: 1-1",
      "Idempotency-Key: a",
    ]) {
      const [header = ""] = name.split(":");
      const twice = header === "Authorization" ? "" : `${name}\r\n`;
      const answer = await raw(gateway.port, `${head("GET", "/v1/keys", `${auth}${twice}${name}`)}\r\n\r\n`);
      expect(answer.status, name).toBe(400);
    }
  });

  test("too many or too long headers, and too long addresses, are refused", async ({ gateways }) => {
    const gateway = await gateways.start();
    const many = Array.from({ length: 3_000 }, (_, index) => `X-${index}: 1\r\n`).join("");
    expect((await raw(gateway.port, `${head("GET", "/healthz", many)}\r\n`)).status).toBe(431);
    expect(
      (await raw(gateway.port, `${head("GET", "/healthz", `X: ${"y".repeat(100_000)}\r\n`)}\r\n`)).status,
    ).toBe(431);
    expect((await raw(gateway.port, `${head("GET", `/${"y".repeat(100_000)}`)}\r\n`)).status).toBe(431);
    expect((await raw(gateway.port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")).status).toBe(400);
    expect((await raw(gateway.port, "nonsense\r\n\r\n")).status).toBe(400);
    expect((await raw(gateway.port, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")).status).toBe(400);
    await stillServes(gateway);
  });

  test("request paths that are spelled to reach another route are refused", async ({ gateways }) => {
    const gateway = await gateways.start();
    const paths = [
      "/v1/jobs/%2e%2e",
      "/v1/jobs/..%2fkeys",
      "/v1/jobs/a%00b",
      "/v1/jobs/%00",
      "/v1/jobs/%zz",
      "/v1/jobs/%ff%fe",
      "/v1/jobs/a%2fb/events",
      `/v1/jobs/${"a".repeat(200)}`,
      `/v1/jobs/${"a".repeat(5_000)}`,
      "/v1/jobs/12345",
      "/v1/jobs/*",
      "/v1/jobs/%7B%7D",
      "/v1/sandbox/sessions/ACME%0a/main/copy",
      "/v1//jobs",
      "/v1/jobs/",
      "/V1/jobs",
      "//v1/keys",
      "/.env",
      "/v1/../v1/keys",
    ];
    for (const path of paths) {
      const answer = await raw(gateway.port, `${head("GET", path, auth)}\r\n`);
      expect([400, 404, 405], `${path}: ${answer.text}`).toContain(answer.status);
      expect(answer.text).not.toContain("    at ");
    }
    for (const target of [
      "http://evil.example/v1/keys",
      "evil.example:443",
      "*",
      "/v1/keys#x",
      "/v1/jobs?a=\r\nX: y",
    ]) {
      const answer = await raw(gateway.port, `${head("GET", target)}\r\n`, { maxMs: 3_000 });
      expect([400, 401, 404], `${target}: ${answer.text}`).toContain(answer.status);
    }
    await stillServes(gateway);
  });

  test("a wrong method is answered with the right ones in Allow, and unknown methods are refused", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const patched = await gateway.call("PATCH", "/v1/jobs");
    expect(patched).toMatchObject({ status: 405, body: { code: "method-not-allowed" } });
    expect(patched.headers.get("allow")).toBe("POST, GET");
    for (const method of ["TRACE", "CONNECT", "PROPFIND", "OPTIONS", "HEAD", "BREW"]) {
      const { status } = await raw(gateway.port, `${head(method, "/v1/jobs", auth)}\r\n`, { maxMs: 3_000 });
      expect(status, method).toBeGreaterThanOrEqual(400);
      expect(status, method).toBeLessThan(500);
    }
  });

  test("an unknown or repeated query parameter is refused", async ({ gateways }) => {
    const gateway = await gateways.start();
    for (const query of [
      "?nope=1",
      "?limit=1&limit=2",
      "?limit=NaN",
      "?limit=1e9",
      "?__proto__[x]=1",
      "?limit[]=3",
    ]) {
      expect((await gateway.call("GET", `/v1/audit${query}`)).status, query).toBe(400);
    }
    expect((await gateway.call("GET", "/v1/keys?x=1")).status).toBe(400);
  });

  test("requests piled onto one connection are answered in order", async ({ gateways }) => {
    const gateway = await gateways.start();
    const one = `GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const answer = await raw(gateway.port, `${one.repeat(200)}${head("GET", "/healthz")}\r\n`);
    expect(answersIn(answer)).toBe(201);
  });
});
