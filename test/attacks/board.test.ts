import { describe, expect } from "vitest";
import { adminKey, type TestGateway, test } from "../support/gateway.ts";
import { raw } from "../support/raw-http.ts";

function login(gateway: TestGateway): Promise<Response> {
  return fetch(`${gateway.url}/board/login`, {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/x-www-form-urlencoded", origin: gateway.url },
    body: `key=${adminKey}`,
  });
}

async function cookieOf(gateway: TestGateway): Promise<string> {
  const answer = await login(gateway);
  return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
}

describe("hostile visitor of the board", () => {
  test("a hostile visitor of the board has no use of a cookie from before the configured key was replaced", async ({
    gateways,
  }) => {
    const before = await gateways.start();
    const cookie = await cookieOf(before);
    const look = async (gateway: TestGateway) =>
      (await fetch(`${gateway.url}/board/api/queues`, { headers: { cookie } })).status;
    expect(await look(before)).toBe(200);
    // Another gateway with the same key knows it, one with another key does not.
    expect(await look(await gateways.start())).toBe(200);
    const after = await gateways.start({ BERTH_ADMIN_KEY: "another-admin-key-for-tests-0123456789" });
    expect(await look(after)).toBe(401);
  });

  test("a hostile visitor of the board cannot plant a cookie from a neighbouring host where the gateway is behind https", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_BOARD_COOKIE: "secure" });
    const { headers } = await login(gateway);
    const [cookie = "", ...attributes] = (headers.get("set-cookie") ?? "").split("; ");
    expect(cookie).toMatch(/^__Host-berth_board=/);
    expect(attributes).toEqual(expect.arrayContaining(["Path=/", "Secure", "HttpOnly", "SameSite=Strict"]));
    expect(attributes.join()).not.toMatch(/domain/i);
    const look = async (sent: string) =>
      (await fetch(`${gateway.url}/board/api/queues`, { headers: { cookie: sent } })).status;
    expect(await look(cookie)).toBe(200);
    // Any subdomain may set one without the prefix.
    const planted = cookie.replace("__Host-", "");
    expect(await look(planted)).toBe(401);
    expect(await look(`berth_board=${"x".repeat(43)}; ${cookie}`)).toBe(200);
  });

  test("a hostile visitor of the board runs nothing again by odd names of queues and jobs, through another sandbox's queue, or from elsewhere", async ({
    gateways,
    redis,
  }) => {
    const gateway = await gateways.start();
    const submit = (tenant: string, id: string) =>
      gateway.call("POST", "/v1/jobs", { body: { tenant, id, request: { kind: "exec", command: "true" } } });
    await submit("acme", "unwanted");
    await submit("globex", "other");
    await gateway.call("DELETE", "/v1/jobs/unwanted");
    const cookie = await cookieOf(gateway);
    const put = async (path: string, headers: Record<string, string> = {}) =>
      (
        await fetch(`${gateway.url}/board/api/queues/${path}`, {
          method: "PUT",
          headers: { cookie, origin: gateway.url, ...headers },
        })
      ).status;
    expect((await fetch(`${gateway.url}/board/api/queues`, { headers: { cookie } })).status).toBe(200);
    const names = [
      "__proto__",
      "constructor",
      "%00",
      "a".repeat(250),
      "..%2f..%2fkeys",
      "*",
      "%2e%2e",
      "d-*",
    ];
    for (const name of names) {
      expect([400, 404], name).toContain(await put(`tenants%3Aacme/${name}/retry`));
      expect([400, 404], name).toContain(await put(`${name}/unwanted/retry`));
      expect([400, 404], name).toContain(await put(`fleet%3Adead%20letters/${name}/retry`));
    }
    for (const key of ["wait", "meta", "unwanted:logs", "unwanted~2~3", "unwanted~NaN", "other"])
      expect([204, 400, 404], key).toContain(await put(`tenants%3Aacme/${encodeURIComponent(key)}/retry`));
    expect(await put("tenants%3Aglobex/unwanted/retry"), "through another sandbox").toBe(404);
    expect(await put("fleet%3Aoffers/unwanted/retry")).toBe(405);
    expect(await put("tenants%3Aacme/unwanted/retry", { origin: "https://evil.example" })).toBe(403);
    expect(await put("tenants%3Aacme/unwanted/retry", { cookie: "" })).toBe(401);
    const client = redis.connect();
    const jobs = (await client.zrange("berth:unfinished", "0", "-1")).sort();
    expect(jobs.filter((id) => !/^(other|unwanted-redrive-\d)$/.test(id))).toEqual([]);
    expect((await gateway.call("GET", "/healthz")).status).toBe(200);
  });

  test("a hostile visitor of the board finds nothing by patterns, markup or lists, and its text comes back escaped", async ({
    gateways,
    redis,
  }) => {
    const gateway = await gateways.start();
    const cookie = await cookieOf(gateway);
    await redis.connect().zadd("berth:sandboxes", 1, "acme");
    const find = async (query: string) => {
      const answer = await fetch(`${gateway.url}/board/find?${query}`, { headers: { cookie } });
      return { status: answer.status, text: await answer.text() };
    };
    for (const name of [
      "*",
      "[a-z]*",
      "ac?e",
      "%2A",
      "acme%00",
      "a".repeat(10_000),
      "shared.all",
      "acme.s.x",
    ]) {
      const { status, text } = await find(`tenant=${name}`);
      expect([404, 431], name).toContain(status);
      expect(text, name).not.toContain("find?tenant=acme");
    }
    const markup = await find(`tenant=${encodeURIComponent('"><script>alert(1)</script>')}`);
    expect(markup.status).toBe(404);
    expect(markup.text).not.toContain("<script");
    expect(markup.text).toContain("&quot;&gt;&lt;script&gt;");
    expect((await find("tenant=acme&tenant=globex")).status, "a list is not looked for").toBe(200);
    expect((await fetch(`${gateway.url}/board/find?tenant=acme`, { redirect: "manual" })).status).toBe(303);
  });
});

test("the gateway's page at / takes no query, echoes nothing and reveals nothing of the fleet", async ({
  gateways,
}) => {
  const gateway = await gateways.start();
  const page = await fetch(gateway.url);
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(await page.text()).not.toMatch(/redis|acme|worker-/i);
  const query = await fetch(`${gateway.url}/?a=<script>alert(1)</script>`);
  expect(query.status).toBe(400);
  expect(await query.text()).not.toContain("alert(1)");
  for (const target of ["*", "http://evil.example/", "//evil.example/"]) {
    const answer = await raw(
      gateway.port,
      `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    expect([400, 404], target).toContain(answer.status);
  }
});
