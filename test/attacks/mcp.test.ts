import { describe, expect } from "vitest";
import { adminKey, fleetTest, type TestGateway, test } from "../support/gateway.ts";
import { McpSession } from "../support/mcp.ts";

const both = { accept: "application/json, text/event-stream" };
const acme = { ...both, "berth-tenant": "acme" };

function rpc(method: string, params: object = {}) {
  return { jsonrpc: "2.0", id: 1, method, params };
}

function post(gateway: TestGateway, body: unknown, headers: Record<string, string> = acme, key = adminKey) {
  return gateway.fetch("POST", "/mcp", { key, body, headers });
}

async function tenantKey(gateway: TestGateway, tenant: string, more: object = {}): Promise<string> {
  const made = await gateway.call("POST", "/v1/keys", {
    body: { role: "tenant", tenant, name: tenant, ...more },
  });
  return made.body.token;
}

describe("hostile MCP client", () => {
  test("an MCP client without a good key gets no answer, and the refusal asks for a bearer token", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    for (const key of ["wrong-key", ""]) {
      const headers = key === "" ? both : { ...both, authorization: `Bearer ${key}` };
      const answer = await gateway.fetch("POST", "/mcp", {
        key: undefined,
        body: rpc("tools/list"),
        headers,
      });
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
    }
  });

  test("MCP without keys refuses a page of another origin", async ({ gateways }) => {
    const gateway = await gateways.start({ BERTH_ADMIN_KEY: "" });
    const from = async (headers: Record<string, string>) =>
      (await gateway.fetch("POST", "/mcp", { key: undefined, body: rpc("tools/list"), headers })).status;
    expect(await from(acme)).toBe(200);
    expect(await from({ ...acme, origin: "https://evil.example" })).toBe(403);
    expect(await from({ ...acme, "x-forwarded-for": "203.0.113.1" })).toBe(401);
  });

  test("MCP calls count against the key's rate", async ({ gateways }) => {
    const gateway = await gateways.start();
    const key = await tenantKey(gateway, "acme", { rate: 1 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post(gateway, rpc("tools/list"), both, key)),
    );
    expect(answers.map(({ status }) => status)).toContain(429);
  });

  test("the key decides the tenant: another's is refused, and an admin key has to name one", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const key = await tenantKey(gateway, "acme");
    const other = { ...both, "berth-tenant": "globex" };
    expect((await post(gateway, rpc("tools/list"), other, key)).status).toBe(403);
    expect((await post(gateway, rpc("tools/list"), both, key)).status).toBe(200);
    expect((await post(gateway, rpc("tools/list"), { ...acme, "berth-scope": "shared" }, key)).status).toBe(
      403,
    );
    expect((await post(gateway, rpc("tools/list"), { ...acme, "berth-profile": "gpu" }, key)).status).toBe(
      403,
    );
    const unnamed = await post(gateway, rpc("tools/list"), both);
    expect([unnamed.status, await unnamed.json()]).toMatchObject([
      400,
      { detail: "the tenant is missing", problems: ["the header Berth-Tenant: name one"] },
    ]);
    for (const name of ["..", "shared", "a\u00a0b", "\u00ff", "a".repeat(300)])
      expect((await post(gateway, rpc("tools/list"), { ...both, "berth-tenant": name })).status).toBe(400);
  });

  test("MCP bodies that are too large, lists of messages and members called __proto__ are refused", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_BODY_BYTES: "10000" });
    const large = rpc("tools/call", {
      name: "write",
      arguments: { file_path: "a", content: "x".repeat(20_000) },
    });
    expect((await post(gateway, large)).status).toBe(413);
    expect((await post(gateway, Array(50).fill(rpc("tools/list")))).status).toBe(400);
    const poison = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":{"__proto__":{"path":"x"}}}}`;
    expect((await post(gateway, poison)).status).toBe(400);
    expect((await post(gateway, "{")).status).toBe(400);
    expect((await post(gateway, { hello: "world" })).status).toBe(400);
    expect((await gateway.call("GET", "/mcp")).status).toBe(405);
    expect((await gateway.call("GET", "/healthz")).status).toBe(200);
  });

  test("MCP names of tools and arguments that do not exist are refused without a job", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    for (const era of ["legacy", "modern"] as const) {
      const headers = { authorization: `Bearer ${adminKey}`, "berth-tenant": "acme" };
      await using mcp = await McpSession.http(gateway.url, headers, era);
      for (const name of ["rm", "constructor", "toString", "hasOwnProperty", "__proto__", "x".repeat(10_000)])
        await expect(mcp.call(name, { command: "ls" }), name.slice(0, 20)).rejects.toThrow();
      const wrong: readonly [string, Record<string, unknown>][] = [
        ["bash", {}],
        ["bash", { command: 7 }],
        ["bash", { command: "ls", tenant: "globex" }],
        ["bash", { command: "ls", constructor: { prototype: { a: 1 } } }],
        ["bash", { command: "ls", session: "other\n" }],
        ["bash", { command: "ls", timeout_ms: -1 }],
        ["bash", { command: "a\0b" }],
        ["bash", { command: "ls", env: { "A=B": "c" } }],
        ["read", { file_path: "/etc/passwd" }],
        ["read", { file_path: "../../etc/passwd" }],
        ["write", { file_path: "", content: "" }],
        ["glob", { pattern: "*", limit: 1e9 }],
        ["run_code", { code: "1", language: "cobol" }],
        ["job", { id: "x", after: "0-0; DROP" }],
        ["job", { id: "no-such-job" }],
        ["sandbox", { action: "escape" }],
      ];
      for (const [name, args] of wrong)
        expect(await mcp.call(name, args), JSON.stringify(args)).toMatchObject({ isError: true });
    }
    expect((await gateway.call("GET", "/v1/jobs")).body.jobs).toEqual([]);
    expect(({} as { a?: number }).a).toBeUndefined();
  });

  test("MCP subscriptions that would stay open are refused", async ({ gateways }) => {
    const gateway = await gateways.start();
    const headers = {
      ...acme,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "subscriptions/listen",
    };
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const listen = rpc("subscriptions/listen", { notifications: { toolsListChanged: true }, _meta: meta });
    const text = await (await post(gateway, listen, headers)).text();
    expect(text).toContain("Subscription limit");
  });

  fleetTest(
    "jobs and artifacts of another tenant do not exist for a key, nor for an admin's other tenant",
    async ({ fleet, gateways }) => {
      await fleet.worker("worker-1");
      const gateway = await gateways.start();
      const open = (key: string, tenant: string) =>
        McpSession.http(gateway.url, { authorization: `Bearer ${key}`, "berth-tenant": tenant });
      const keys = { acme: await tenantKey(gateway, "acme"), globex: await tenantKey(gateway, "globex") };
      await using mine = await open(keys.acme, "acme");
      const made = await mine.call("bash", { command: "echo secret | tee s.txt", artifacts: ["s.txt"] });
      const { job } = made.structured;
      const { uri } = made.content[1] as { uri: string };
      expect((await mine.call("job", { id: job })).text).toContain("secret");
      for (const [key, tenant] of [
        [keys.globex, "globex"],
        [adminKey, "globex"],
      ] as const) {
        await using theirs = await open(key, tenant);
        for (const id of [job, `acme.${job}`])
          for (const action of ["wait", "cancel"])
            expect(await theirs.call("job", { id, action })).toMatchObject({
              isError: true,
              structured: { code: "not-found" },
            });
        await expect(theirs.client.readResource({ uri })).rejects.toThrow("no such artifact");
      }
      await using admin = await open(adminKey, "acme");
      expect((await admin.call("job", { id: `acme.${job}` })).text).toContain("secret");
    },
  );

  fleetTest.for(["over Redis", "with an admin key"] as const)(
    "artifacts of another tenant do not exist for berth mcp %s",
    async (way, { fleet, gateways }) => {
      await fleet.worker("worker-1");
      const env: Record<string, string> =
        way === "over Redis"
          ? { REDIS_URL: fleet.redis.url }
          : { BERTH_URL: (await gateways.start()).url, BERTH_KEY: adminKey };
      await using mine = await McpSession.stdio(["--tenant", "Acme Ltd."], env);
      const made = await mine.call("bash", { command: "echo secret > s.txt", artifacts: ["s.txt"] });
      const { uri } = made.content[1] as { uri: string };
      const { contents } = await mine.client.readResource({ uri });
      expect(contents).toMatchObject([{ uri, blob: Buffer.from("secret\n").toString("base64") }]);
      await using theirs = await McpSession.stdio(["--tenant", "globex"], env);
      await expect(theirs.client.readResource({ uri })).rejects.toThrow("no such artifact");
    },
  );

  fleetTest("a command that floods its output gets a bounded answer", async ({ fleet, gateways }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const headers = { authorization: `Bearer ${adminKey}`, "berth-tenant": "acme" };
    await using mcp = await McpSession.http(gateway.url, headers);
    const flood = await mcp.call("bash", { command: "seq 1 1000000" });
    expect(flood.text.length).toBeLessThan(40_000);
    expect(flood.text).toContain("output truncated");
    await mcp.call("bash", { command: "seq 1 100000 > long.txt" });
    const read = await mcp.call("read", { file_path: "long.txt", limit: 100_000 });
    expect(read.text.length).toBeLessThan(40_000);
  });
});
