import { createHash } from "node:crypto";
import { describe, expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox } from "../support/fleet.ts";
import { adminKey, type TestGateway, fleetTest as test } from "../support/gateway.ts";

const place = { tenant_id: "acme", session_id: "s1" };

function sandbox(gateway: TestGateway, name: string, body: object, headers: Record<string, string> = {}) {
  return gateway.call("POST", `/v1/sandbox/${name}`, { body: { ...place, ...body }, headers });
}

describe("code sandbox over HTTP", () => {
  test("the code sandbox over HTTP runs code and commands, and reports how they ended", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const ran = await sandbox(gateway, "execute", { code: "print(42)", language: "python" });
    expect(ran).toMatchObject({
      status: 200,
      body: { exit_code: 0, stdout: "42\n", stderr: "", artifacts: [] },
    });
    const failed = await sandbox(gateway, "bash", {
      command: "set -o pipefail; false | true",
      env: { A: "b" },
    });
    expect(failed.body).toMatchObject({ exit_code: 1, outcome: { kind: "exited", code: 1 } });
    const slow = await sandbox(gateway, "bash", { command: "sleep 60", timeout: 0.3 });
    expect(slow.body).toMatchObject({
      exit_code: 124,
      outcome: { kind: "timed-out" },
      text: "[timed out after 0.3s]\n[exit 124]",
    });
    const block = await sandbox(gateway, "bash", { command: "echo hi; exit 4", block: true });
    expect(block.body.text).toBe("[/exec echo hi; exit 4]\nhi\n[exit 4]\n[END EXEC]");
    const { body: job } = await gateway.call("GET", `/v1/jobs/${failed.body.job_id}`);
    expect(job.result.text).toBe("[exit 1]");
    const defaulted = await gateway.call("POST", "/v1/sandbox/execute", { body: { code: "print(1)" } });
    expect(defaulted.body.stdout).toBe("1\n");
    const again = { "idempotency-key": "one" };
    const once = await sandbox(gateway, "bash", { command: "echo x >> n; wc -l < n" }, again);
    expect((await sandbox(gateway, "bash", { command: "echo x >> n; wc -l < n" }, again)).body).toEqual(
      once.body,
    );
  });

  test("the code sandbox over HTTP writes, reads, edits, patches, lists and searches files", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const text = "one\ntwo\nthree\n";
    const sha256 = createHash("sha256").update(text).digest("hex");
    expect((await sandbox(gateway, "write", { path: "a/b.txt", content: text })).body).toEqual({
      path: "a/b.txt",
      size: 14,
      sha256,
      created: true,
    });
    expect((await sandbox(gateway, "read", { path: "a/b.txt", offset: 2, limit: 1 })).body).toEqual({
      path: "a/b.txt",
      content: "two\n",
      first_line: 2,
      last_line: 2,
      more: true,
    });
    const bytes = await sandbox(gateway, "read_binary", { path: "a/b.txt", offset: 4, limit: 3 });
    expect(Buffer.from(bytes.body.content, "base64").toString()).toBe("two");
    expect((await sandbox(gateway, "grep", { pattern: "^t", path: "a" })).body.matches).toMatchObject([
      { path: "a/b.txt", line: 2, text: "two" },
      { path: "a/b.txt", line: 3, text: "three" },
    ]);
    expect((await sandbox(gateway, "glob", { pattern: "**/*.txt" })).body).toEqual({
      paths: ["a/b.txt"],
      truncated: false,
    });
    expect(
      (await sandbox(gateway, "edit", { path: "a/b.txt", old_text: "two", new_text: "2" })).body.count,
    ).toBe(1);
    const diff = "--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1,3 +1,3 @@\n-one\n+1\n 2\n three\n";
    expect((await sandbox(gateway, "patch", { diff })).body).toEqual({ count: 1 });
    expect((await sandbox(gateway, "read", { path: "a/b.txt" })).body.content).toBe("1\n2\nthree\n");
    expect((await sandbox(gateway, "list", { path: "a" })).body.entries).toMatchObject([
      { path: "a/b.txt", type: "file" },
    ]);
    expect((await sandbox(gateway, "stat", { path: "a/b.txt", hash: true })).body).toMatchObject({
      entry: { path: "a/b.txt", type: "file", size: 10 },
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test("the code sandbox over HTTP answers what a file operation cannot do with a 4xx and its reason", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    expect(await sandbox(gateway, "read", { path: "nope" })).toMatchObject({
      status: 404,
      body: { code: "not-found" },
    });
    await sandbox(gateway, "write", { path: "f", content: "x" });
    expect((await sandbox(gateway, "edit", { path: "f", old_text: "absent", new_text: "y" })).status).toBe(
      422,
    );
    expect((await sandbox(gateway, "read", { path: "/etc/passwd" })).status).toBe(400);
    expect((await sandbox(gateway, "read", { path: "../../etc/passwd" })).status).toBe(400);
    expect((await sandbox(gateway, "grep", { pattern: "(", path: "" })).status).toBe(422);
    expect((await sandbox(gateway, "write", { path: "g", content: "%%%", encoding: "base64" })).status).toBe(
      400,
    );
  });

  test("the code sandbox over HTTP uses the sandbox of its session, which a job with that scope shares and the tenant's own is not", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", busybox);
    const gateway = await gateways.start();
    const note = { path: "note", content: "here" };
    expect((await sandbox(gateway, "write", note)).status).toBe(200);
    const env = { BERTH_URL: gateway.url, BERTH_KEY: adminKey };
    const cat = (...options: string[]) => runCli(["exec", "acme", ...options, "--", "cat", "note"], { env });
    expect(await cat("--scope", "session", "--session", "s1")).toMatchObject({ code: 0, stdout: "here" });
    expect(await cat()).toMatchObject({ code: 1, stdout: "" });
  });

  test("the code sandbox over HTTP has sessions apart from each other, filled, listed and destroyed", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const files = [
      { path: "src/a.txt", content: "a" },
      { path: "src/b.bin", content: Buffer.from([0, 255]).toString("base64"), encoding: "base64" },
    ];
    const copied = await gateway.call("POST", "/v1/sandbox/sessions/acme/s1/copy", { body: { files } });
    expect(copied).toMatchObject({ status: 200, body: { count: 2 } });
    expect((await sandbox(gateway, "glob", { pattern: "**/*" })).body.paths).toContain("src/b.bin");
    const other = await gateway.call("POST", "/v1/sandbox/list", {
      body: { tenant_id: "acme", session_id: "s2" },
    });
    expect(other.body.entries).toEqual([]);
    const { sessions } = (await gateway.call("GET", "/v1/sandbox/sessions")).body;
    expect(sessions.map(({ session_id }: { session_id: string }) => session_id).sort()).toEqual(["s1", "s2"]);
    expect((await gateway.call("DELETE", "/v1/sandbox/sessions/acme/s1")).status).toBe(204);
    expect((await sandbox(gateway, "list", {})).body.entries).toEqual([]);
  });

  test("the code sandbox over HTTP keeps what a command leaves as artifacts, whole, by range, and never as a page", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", { BERTH_ARTIFACTS: `${fleet.redis.directory}/artifacts` });
    const gateway = await gateways.start({ BERTH_ARTIFACTS: `${fleet.redis.directory}/artifacts` });
    const page = "<script>alert(1)</script>";
    const made = await sandbox(gateway, "bash", {
      command: `mkdir -p out && printf '${page}' > 'out/ein "Bär".html' && head -c 300000 /dev/urandom > out/large.bin`,
      artifacts: ["out/*"],
    });
    expect(made.body.artifacts).toHaveLength(2);
    const html = made.body.artifacts.find(({ path }: { path: string }) => path.endsWith(".html"));
    const large = made.body.artifacts.find(({ path }: { path: string }) => path.endsWith(".bin"));
    const shown = await gateway.fetch("GET", html.url);
    expect(await shown.text()).toBe(page);
    expect(shown.headers.get("content-disposition")).toMatch(
      /^attachment; filename="ein _B_r_\.html"; filename\*=UTF-8''ein%20%22B%C3%A4r%22\.html$/,
    );
    expect(shown.headers.get("x-content-type-options")).toBe("nosniff");
    expect(shown.headers.get("content-security-policy")).toContain("sandbox");
    expect(shown.headers.get("etag")).toBe(`"${html.sha256}"`);
    const whole = Buffer.from(await (await gateway.fetch("GET", large.url)).arrayBuffer());
    expect(createHash("sha256").update(whole).digest("hex")).toBe(large.sha256);
    const part = await gateway.fetch("GET", large.url, { headers: { range: "bytes=100-199" } });
    expect(part.status).toBe(206);
    expect(part.headers.get("content-range")).toBe("bytes 100-199/300000");
    expect(Buffer.from(await part.arrayBuffer())).toEqual(whole.subarray(100, 200));
    const tail = await gateway.fetch("GET", large.url, { headers: { range: "bytes=-10" } });
    expect(Buffer.from(await tail.arrayBuffer())).toEqual(whole.subarray(-10));
    expect((await gateway.call("GET", large.url, { headers: { range: "bytes=300000-" } })).status).toBe(416);
    expect(
      (await gateway.call("GET", large.url, { headers: { "if-none-match": `"${large.sha256}"` } })).status,
    ).toBe(304);
    expect((await gateway.call("GET", `/v1/artifacts/${"x".repeat(32)}`)).status).toBe(404);
  });
});
