import { describe, expect } from "vitest";
import { adminKey, fleetTest as test } from "../support/gateway.ts";
import { type Asked, type Era, McpSession } from "../support/mcp.ts";

const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

/** A busy machine may take longer than the wait of one call. */
async function askedUntil(
  mcp: McpSession,
  args: Record<string, unknown>,
  isSo: (asked: Asked) => boolean,
): Promise<Asked> {
  for (;;) {
    const asked = await mcp.call("job", args);
    if (isSo(asked) || isFinished(asked)) return asked;
  }
}

function isFinished({ structured }: Asked): boolean {
  return structured.state === "finished" || structured.state === "failed";
}

describe("berth mcp on stdin and stdout", () => {
  test.for(["legacy", "modern"] as const satisfies readonly Era[])(
    "a client of the %s protocol works in a sandbox through Redis",
    async (era, { fleet }) => {
      await fleet.worker("worker-1");
      await using mcp = await McpSession.stdio(["--tenant", "acme"], { REDIS_URL: fleet.redis.url }, era);
      const { tools } = await mcp.client.listTools();
      expect(tools.map(({ name }) => name)).toEqual([
        ...["bash", "read", "write", "edit", "glob", "grep", "list", "run_code", "job", "sandbox"],
      ]);
      expect(await mcp.call("write", { file_path: "a/b.txt", content: "one\ntwo\nthree\n" })).toMatchObject({
        text: "created, 14 bytes",
        isError: false,
      });
      expect(await mcp.call("bash", { command: "cat a/b.txt; echo err >&2; exit 3" })).toMatchObject({
        text: expect.stringMatching(/^one\ntwo\nthree\nerr\n\[exit 3\]$/),
        isError: false,
        structured: { state: "finished", outcome: { kind: "exited", code: 3 }, exit_code: 3 },
      });
      expect((await mcp.call("read", { file_path: "/workspace/a/b.txt", offset: 2, limit: 1 })).text).toBe(
        "two\n\n[lines 2 to 2; go on with offset 3]",
      );
      const edit = { file_path: "a/b.txt", old_string: "two", new_string: "2" };
      expect((await mcp.call("edit", edit)).text).toBe("1 place changed");
      expect(await mcp.call("edit", edit)).toMatchObject({
        isError: true,
        text: expect.stringMatching(/^ERR: /),
        structured: { outcome: { kind: "refused" } },
      });
      expect((await mcp.call("grep", { pattern: "^[2t]" })).text).toBe("a/b.txt:2:2\na/b.txt:3:three");
      expect((await mcp.call("grep", { pattern: "nothing like it" })).text).toBe("no matches");
      expect((await mcp.call("glob", { pattern: "**/*.txt" })).text).toBe("a/b.txt (12 bytes)");
      expect((await mcp.call("list")).text).toBe("a/");
      expect((await mcp.call("run_code", { code: "print(6 * 7)" })).text).toContain("42");
      expect((await mcp.call("sandbox")).text).toContain("a worker holds it");
      expect(await mcp.call("read", { file_path: "../etc/passwd" })).toMatchObject({
        isError: true,
        text: expect.stringContaining('".." segment'),
      });
      const wrong = await mcp.call("bash", { comand: "ls" });
      expect(wrong).toMatchObject({ isError: true, text: expect.stringContaining("command") });
      expect((await mcp.call("sandbox", { action: "reset" })).text).toBe("nothing is there");
    },
  );

  test("a call that takes long is answered with its output so far, and the rest is asked for with the job's id", async ({
    fleet,
  }) => {
    // Longer than a busy machine stands still: a lost lease would end the job.
    await fleet.worker("worker-1", { BERTH_LEASE_MS: "60000" });
    await using mcp = await McpSession.stdio(["--tenant", "acme", "--wait", "3s"], {
      REDIS_URL: fleet.redis.url,
    });
    const begun = await mcp.call("bash", {
      command: "echo first; until [ -e go ]; do sleep 0.1; done; echo last",
    });
    const { job } = begun.structured;
    expect(begun).toMatchObject({
      isError: false,
      // It is the sandbox's first, and a container may take longer than the wait.
      text: expect.stringMatching(/^(first\n)?\[(still running as )?job /),
      structured: { state: expect.stringMatching(/^(waiting|running)$/) },
    });
    const running = await askedUntil(mcp, { id: job }, ({ text }) => text.startsWith("first\n"));
    expect(running).toMatchObject({ isError: false, structured: { state: "running", job } });
    expect(running.text).toContain("first\n[still running as job");
    const { after } = running.structured;
    const behind = await mcp.call("bash", { command: "echo queued" });
    expect(behind.structured).toMatchObject({ state: "waiting" });
    await mcp.call("write", { file_path: "go", content: "", session: "beside" });
    const rest = await askedUntil(mcp, { id: job, after }, isFinished);
    expect(rest).toMatchObject({ text: "last\n", structured: { exit_code: 0, job } });
    expect((await mcp.call("job", { id: job })).text).toBe("first\nlast\n");
    expect((await askedUntil(mcp, { id: behind.structured.job }, isFinished)).text).toBe("queued\n");
    const endless = await mcp.call("bash", { command: "sleep 600" });
    const cancel = { id: endless.structured.job, action: "cancel" };
    expect(await askedUntil(mcp, cancel, isFinished)).toMatchObject({
      isError: true,
      structured: { outcome: { kind: "cancelled" } },
    });
  });

  test("a client sees output as it comes, and cancelling its call cancels the job", async ({ fleet }) => {
    await fleet.worker("worker-1");
    await using mcp = await McpSession.stdio(["acme"], { REDIS_URL: fleet.redis.url });
    const seen: string[] = [];
    const gone = new AbortController();
    const call = mcp.call(
      "bash",
      { command: "echo alive; sleep 600" },
      { signal: gone.signal, onprogress: ({ message = "" }) => void seen.push(message) },
    );
    call.catch(() => {});
    await expect.poll(() => seen.join("")).toBe("alive\n");
    gone.abort();
    await expect(call).rejects.toThrow();
    const unfinished = async () =>
      (await fleet.client().sandboxes({ tenant: "acme", limit: 10 }))[0]?.unfinished;
    await expect.poll(unfinished, { timeout: 10_000 }).toBe(0);
  });

  test("berth mcp cancels the open calls of a client that leaves", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const mcp = await McpSession.stdio(["--tenant", "acme"], { REDIS_URL: fleet.redis.url });
    const seen: string[] = [];
    const options = { onprogress: ({ message = "" }) => void seen.push(message) };
    const call = mcp.call("bash", { command: "echo alive; sleep 600" }, options);
    call.catch(() => {});
    await expect.poll(() => seen.join("")).toBe("alive\n");
    await mcp.client.close();
    const berth = fleet.client();
    const unfinished = async () => (await berth.sandboxes({ tenant: "acme", limit: 10 }))[0]?.unfinished;
    await expect.poll(unfinished, { timeout: 10_000 }).toBe(0);
  });

  test("berth mcp does the same through a gateway: images are images, and artifacts are links that can be read", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const args = ["--tenant", "acme", "--scope", "session", "--session", "chat", "--url", gateway.url];
    await using mcp = await McpSession.stdio(args, { BERTH_KEY: adminKey });
    const made = await mcp.call("bash", {
      command: "base64 -d > p.png; cp p.png q.png; echo text > t.png",
      stdin: png.toString("base64"),
      artifacts: ["q.png"],
    });
    expect(made.content[1]).toMatchObject({ type: "resource_link", name: "q.png", size: png.length });
    const { uri } = made.content[1] as { uri: string };
    const { contents } = await mcp.client.readResource({ uri });
    expect(contents).toMatchObject([{ uri, blob: png.toString("base64") }]);
    expect((await mcp.call("read", { file_path: "p.png" })).content).toEqual([
      { type: "image", mimeType: "image/png", data: png.toString("base64") },
    ]);
    expect(await mcp.call("read", { file_path: "t.png" })).toMatchObject({
      isError: true,
      text: expect.stringContaining("are not one"),
    });
    expect((await mcp.call("sandbox")).text).toContain("sandbox acme.s.chat");
    const elsewhere = fleet.client().tenant("acme").exec("true", { id: "not-of-this-chat" });
    await elsewhere;
    expect(await mcp.call("job", { id: "not-of-this-chat" })).toMatchObject({
      isError: true,
      structured: { code: "not-found" },
    });
  });
});
