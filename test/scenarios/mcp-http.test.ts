import { describe, expect } from "vitest";
import { adminKey, type TestGateway, fleetTest as test } from "../support/gateway.ts";
import { type Era, McpSession } from "../support/mcp.ts";

const eras = ["legacy", "modern"] as const satisfies readonly Era[];

function bearer(key: string, more: Record<string, string> = {}): Record<string, string> {
  return { authorization: `Bearer ${key}`, ...more };
}

async function tenantKey(gateway: TestGateway, tenant: string, more: object = {}): Promise<string> {
  const made = await gateway.call("POST", "/v1/keys", {
    body: { role: "tenant", tenant, name: tenant, ...more },
  });
  return made.body.token;
}

describe("POST /mcp", () => {
  test.for(eras)(
    "a client of the %s protocol works in its key's sandbox",
    async (era, { fleet, gateways }) => {
      await fleet.worker("worker-1");
      const gateway = await gateways.start();
      const key = await tenantKey(gateway, "acme");
      await using mcp = await McpSession.http(gateway.url, bearer(key), era);
      const { tools } = await mcp.client.listTools();
      expect(tools.map(({ name }) => name)).toEqual([
        ...["bash", "read", "write", "edit", "glob", "grep", "list", "run_code", "job", "sandbox"],
      ]);
      expect(tools.find(({ name }) => name === "read")?.annotations).toMatchObject({ readOnlyHint: true });
      const ran = await mcp.call("bash", { command: "set -o pipefail; echo hello > out.txt; false | cat" });
      expect(ran).toMatchObject({ text: "[exit 1]", structured: { outcome: { kind: "exited", code: 1 } } });
      expect((await mcp.call("read", { file_path: "out.txt" })).text).toBe("hello\n");
      const seen: string[] = [];
      const slow = await mcp.call(
        "bash",
        { command: "echo one; until [ -e go ]; do sleep 0.1; done; echo two" },
        {
          onprogress: ({ message = "" }) => {
            // The command goes on only when its first line has been seen here.
            if (seen.push(message) === 1)
              void mcp.call("write", { file_path: "go", content: "", session: "beside" });
          },
        },
      );
      expect(slow.text).toBe("one\ntwo\n");
      expect(seen.join("")).toContain("one\n");
      const kept = await mcp.call("run_code", {
        code: "open('a.txt', 'w').write('kept')",
        artifacts: ["a.txt"],
      });
      const { uri } = kept.content[1] as { uri: string };
      const { contents } = await mcp.client.readResource({ uri });
      expect(contents).toMatchObject([
        { blob: Buffer.from("kept").toString("base64"), mimeType: "text/plain" },
      ]);
      expect(await mcp.call("edit", { file_path: "none", old_string: "a", new_string: "b" })).toMatchObject({
        isError: true,
        text: expect.stringContaining("ERR: "),
      });
      expect((await mcp.call("sandbox", { action: "destroy" })).structured).toMatchObject({
        outcome: { kind: "done" },
      });
    },
  );

  test("a call that takes long is answered with a job id, and a gateway that stops answers at once", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const hasty = await gateways.start({ BERTH_GATEWAY_WAIT_MS: "2000" });
    const headers = bearer(adminKey, { "berth-tenant": "acme" });
    await using mcp = await McpSession.http(hasty.url, headers);
    await mcp.call("bash", { command: "true" });
    const begun = await mcp.call("bash", {
      command: "echo so far; until [ -e go ]; do sleep 0.1; done; exit 5",
    });
    expect(begun.structured).toMatchObject({ state: "running" });
    expect(begun.text).toContain("so far");
    const { job } = begun.structured;

    const other = await gateways.start();
    await using patient = await McpSession.http(other.url, headers);
    const seen: string[] = [];
    const waiting = patient.call(
      "job",
      { id: job },
      { onprogress: ({ message = "" }) => void seen.push(message) },
    );
    await expect.poll(() => seen.join("")).toBe("so far\n");
    other.process.kill("SIGTERM");
    expect((await waiting).structured).toMatchObject({ state: "running", job });
    await mcp.call("write", { file_path: "go", content: "", session: "beside" });
    const ended = async () => (await mcp.call("job", { id: job })).structured;
    await expect.poll(ended).toMatchObject({ state: "finished", exit_code: 5 });
  });

  test("POST /mcp in 2026-07-28: a client that leaves cancels its call, and before that its job goes on", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const states: Record<string, unknown> = {};
    for (const era of eras) {
      await using mcp = await McpSession.http(gateway.url, bearer(adminKey, { "berth-tenant": era }), era);
      const gone = new AbortController();
      const seen: string[] = [];
      const call = mcp.call(
        "bash",
        { command: "echo alive; until [ -e go ]; do sleep 0.1; done" },
        { signal: gone.signal, onprogress: ({ message = "" }) => void seen.push(message) },
      );
      call.catch(() => {});
      await expect.poll(() => seen.join("")).toBe("alive\n");
      const { body } = await gateway.call("GET", `/v1/jobs?tenant=${era}`);
      const [{ id }] = body.jobs;
      gone.abort();
      await expect(call).rejects.toThrow();
      await using again = await McpSession.http(gateway.url, bearer(adminKey, { "berth-tenant": era }), era);
      if (era === "legacy") await again.call("write", { file_path: "go", content: "", session: "beside" });
      states[era] = (await again.call("job", { id })).structured.outcome.kind;
    }
    expect(states).toEqual({ legacy: "exited", modern: "cancelled" });
  });
});
