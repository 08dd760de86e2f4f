import { Berth } from "@berth/client";
import { redisKeys, tenantId } from "@berth/protocol";
import { describe, expect } from "vitest";
import { type TestGateway, test } from "../support/gateway.ts";
import { raw } from "../support/raw-http.ts";

const request = { kind: "exec", command: "true" } as const;
const bob = "bob@example.com";
const bobId = tenantId.parse(bob);
/** As the mapping would make one, of a name that no tenant has. */
const unusedId = tenantId.parse("unused@example.com");

async function keyFor(gateway: TestGateway, tenant: string): Promise<string> {
  const body = { role: "tenant", tenant, name: "theirs" };
  return (await gateway.call("POST", "/v1/keys", { body })).body.token;
}

describe("id that only a name can make", () => {
  test("an id that only a name can make makes no tenant by any door, and names the one that its name has made", async ({
    gateways,
    redis,
  }) => {
    const gateway = await gateways.start();
    const order = { tenant: unusedId, request };
    const makers: [string, string, object?][] = [
      ["POST", "/v1/jobs", order],
      ["POST", "/v1/jobs", { ...order, delayMs: 60_000 }],
      // A name that belongs to another id makes it no better.
      ["POST", "/v1/jobs", { ...order, names: { tenant: bob } }],
      ["POST", "/v1/sandbox/bash", { tenant_id: unusedId, command: "true" }],
      ["POST", `/v1/sandbox/sessions/${unusedId}/main/stop`],
      ["PUT", "/v1/schedules/s", { everyMs: 3_600_000, order }],
      ["POST", `/v1/tenants/${unusedId}/pause`],
      ["POST", `/v1/tenants/${unusedId}/grant`, { pools: ["gpu"] }],
      ["PUT", `/v1/profiles/tenant.${unusedId}`, { limits: { pids: 8 } }],
      ["PUT", `/v1/profiles/agent.${unusedId}.coder`, { limits: { pids: 8 } }],
      ["POST", "/v1/keys", { role: "tenant", tenant: unusedId, name: "x" }],
    ];
    for (const [method, path, body] of makers) {
      const answer = await gateway.call(method, path, { body });
      expect(answer, `${method} ${path}`).toMatchObject({ status: 404, body: { code: "unknown-tenant" } });
    }
    const list = await gateway.call("POST", "/v1/batches", {
      body: `${JSON.stringify(order)}\n`,
      headers: { "content-type": "application/x-ndjson" },
    });
    expect((await gateway.call("GET", `/v1/batches/${list.body.id}`)).body).toMatchObject({
      total: 1,
      refused: 1,
    });
    const db = redis.connect();
    expect((await db.keys("*")).filter((key) => key.includes(unusedId))).toEqual([]);
    const named = await gateway.call("POST", "/v1/jobs", { body: { tenant: "unused@example.com", request } });
    expect(named).toMatchObject({ status: 202, body: { tenant: unusedId } });
    const byId = await gateway.call("POST", "/v1/jobs", { body: order });
    expect(byId).toMatchObject({
      status: 202,
      body: { tenant: unusedId, names: { tenant: "unused@example.com" } },
    });
    const berth = new Berth({ redis: redis.url });
    try {
      const unknown = berth.tenant(tenantId.parse("x@y"));
      await expect(unknown.exec("true").enqueued()).rejects.toMatchObject({ code: "unknown-tenant" });
      await expect(unknown.grant({ pools: ["gpu"] })).rejects.toMatchObject({ code: "unknown-tenant" });
    } finally {
      await berth.close();
    }
  });

  test("an id that only a name can make opens nothing for another tenant's key, however the name is written", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    await keyFor(gateway, bob);
    const eve = await keyFor(gateway, "eve@example.com");
    const spelled = [bob, bobId, "BOB@example.com", "bob@example.com.", "b\u043eb@example.com"];
    for (const tenant of spelled) {
      const path = `/v1/tenants/${encodeURIComponent(tenant)}`;
      const calls = [
        gateway.call("POST", "/v1/jobs", { key: eve, body: { tenant, request } }),
        gateway.call("POST", "/v1/sandbox/bash", { key: eve, body: { tenant_id: tenant, command: "true" } }),
        gateway.call("GET", path, { key: eve }),
        gateway.call("GET", `${path}/secrets`, { key: eve }),
        gateway.call("GET", `/v1/jobs?tenant=${encodeURIComponent(tenant)}`, { key: eve }),
      ];
      for (const { status, body } of await Promise.all(calls))
        expect([status, body.code], tenant).toEqual([403, "forbidden"]);
    }
    // Names that come with a job are believed only of the job's own ids.
    const body = { request, session: "s", names: { tenant: bob, session: "another's", agent: bob } };
    const mine = await gateway.call("POST", "/v1/jobs", { key: eve, body });
    expect(mine.body.names).toEqual({ tenant: "eve@example.com" });
  });
});

describe("name that looks like another", () => {
  test("a name that differs from another only by invisible characters is refused", () => {
    const [heart, family] = ["\u2764\ufe0f", "\u{1f468}\u200d\u{1f467}"];
    const persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645";
    const invisible = ["\u200c", "\u200d", "\ufe0f", "\ufe0e", "\u{e0067}", "\u2060", "\u034f"];
    const shown = ["bob", "bob@example.com", "Zo\u00eb", "\u{1f600}", heart, family, persian, "\u0627\u0628"];
    for (const name of shown) expect(tenantId.safeParse(name).success, name).toBe(true);
    for (const name of shown)
      for (const one of invisible) {
        const letters = [...name];
        for (let at = 0; at <= letters.length; at++) {
          const alike = [...letters.slice(0, at), one, ...letters.slice(at)].join("");
          if (isSeen(letters, at, one)) continue;
          expect(tenantId.safeParse(alike).success, `${JSON.stringify(alike)} like ${name}`).toBe(false);
        }
      }
    const others = [
      // Joiners that join nothing, and selectors that select nothing.
      ...["\u{1f600}\u200d\u{1f600}", "1\ufe0f", "a\u200d\u{1f600}", "\u{1f468}\u200d", "\u200d\u{1f467}"],
      // After letters that never join, and twice.
      ...["\u0627\u200c\u0628", "\u0628\u200c", "\u200c\u0628", "\u0628\u200c\u200c\u0628", "a\u200cb"],
      // As above, without the selector: the same picture.
      "\u{1f3f3}\u200d\u{1f308}",
    ];
    for (const name of others) expect(tenantId.safeParse(name).success, JSON.stringify(name)).toBe(false);
  });

  /** A non-joiner between letters that join, and the selector that makes a sign an emoji, change what is seen. */
  function isSeen(letters: readonly string[], at: number, one: string): boolean {
    const [before = "", after = ""] = [letters[at - 1], letters[at]];
    const parts = /[\u0628\u0645\u06cc\u062e\u0647]/.test(before) && /[\u0600-\u06ff]/.test(after);
    return one === "\u200c" && parts;
  }
});

describe("name", () => {
  const hostile = [
    ...["", " ", "bob\u0000", "bob\n", "\u001b[2J", "bob\u200b@example.com", "moc.elpmaxe\u202ebob"],
    ...["a\u00a0b", "\ufeffacme", "a\u3164", "\ud800", "x".repeat(256), "\u00e9".repeat(128), ".", ".."],
  ];

  test("a name that cannot be shown as it is, or is too long, is refused by every door", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    for (const name of hostile) {
      const answers = await Promise.all([
        ...["tenant", "session", "agent"].map((field) =>
          gateway.call("POST", "/v1/jobs", { body: { tenant: "acme", request, [field]: name } }),
        ),
        gateway.call("POST", "/v1/sandbox/bash", { body: { session_id: name, command: "true" } }),
        gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant: name, name: "x" } }),
      ]);
      for (const { status, body } of answers)
        expect([status, body.code], JSON.stringify(name)).toEqual([400, "invalid-request"]);
    }
    expect((await gateway.call("GET", "/v1/jobs")).body.jobs).toEqual([]);
  });

  test("a name in a path or header is read as one name: no second header, broken UTF-8 or step of a path is another", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const slash = "a/b?c#d%2f..";
    const path = `/v1/tenants/${encodeURIComponent(slash)}`;
    expect((await gateway.call("POST", `${path}/pause`)).status).toBe(204);
    expect((await gateway.call("GET", path)).body).toMatchObject({
      tenant: tenantId.parse(slash),
      name: slash,
      paused: true,
    });
    const longest = "\u00e9".repeat(127);
    expect((await gateway.call("GET", `/v1/tenants/${encodeURIComponent(longest)}`)).status).toBe(200);
    expect((await gateway.call("GET", "/v1/tenants/%ff%fe")).status).toBe(400);
    const auth = "Authorization: Bearer an-admin-key-for-tests-only-0123456789\r\n";
    const message = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const post = async (headers: string) => {
      const { text } = await raw(
        gateway.port,
        `POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${auth}${headers}Accept: application/json, text/event-stream\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${message.length}\r\n\r\n${message}`,
      );
      return text;
    };
    expect(await post("Berth-Tenant: acme\r\nBerth-Tenant: evil\r\n")).toContain("duplicate-header");
    expect(await post("Berth-Tenant: acme\r\nBerth-Session: a\r\nBerth-Session: b\r\n")).toContain(
      "duplicate-header",
    );
    expect(await post("Berth-Tenant: bob@example.com\r\n")).toMatch(/^HTTP\/1.1 200/);
  });

  test("no characters of a given name appear in keys of Redis", async ({ gateways, redis }) => {
    const gateway = await gateways.start();
    const names = ["a}b{c", "*", "a:b", "{acme}", "acme.s.main", "berth:{acme}:lease", "a.b.c"];
    for (const name of names) {
      const body = { tenant: name, session: name, agent: name, scope: "session", request };
      const { body: job } = await gateway.call("POST", "/v1/jobs", { body });
      const id = tenantId.parse(name);
      expect(job).toMatchObject({ tenant: id, sandbox: `${id}.s.${id}`, names: { tenant: name } });
    }
    const keys = await redis.connect().keys("*");
    for (const key of keys) expect(key).toMatch(/^[A-Za-z0-9:{}._@-]+$/);
    expect(keys).toContain(redisKeys.tenantName(tenantId.parse("*")));
    expect(keys.filter((key) => key.includes("{acme}"))).toEqual([]);
  });
});
