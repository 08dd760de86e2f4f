import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EgressLog } from "@berth/ledger";
import { describe, expect } from "vitest";
import { type TestFleet, test } from "../support/fleet.ts";
import { openMirror } from "../support/mirror.ts";

const said = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: "utf8" }).trim();

/** pip and npm are not in the sandbox's image: those of this machine are mounted. */
function tools() {
  const pip = said("python3", "-c", "import pip, os; print(os.path.dirname(os.path.dirname(pip.__file__)))");
  const npm = dirname(dirname(realpathSync(said("sh", "-c", "command -v npm"))));
  const node = dirname(realpathSync(process.execPath));
  return { pip: join(realpathSync(pip), "pip"), npm, node };
}

async function workerWith(fleet: TestFleet, egress: readonly string[]) {
  const at = tools();
  const mount = (source: string, target: string) => ({ source, target: `/opt/${target}` });
  const profiles = {
    default: {
      egress,
      mountable: { pip: mount(at.pip, "py/pip"), npm: mount(at.npm, "npm"), node: mount(at.node, "node") },
      mounts: ["pip", "npm", "node"],
      exec: { timeoutMs: "100s" },
    },
    open: { network: "bridge", egress },
    only: { egress, egressBy: "fetch" },
  };
  const file = join(fleet.workspaces, "..", "worker.json");
  await writeFile(file, JSON.stringify({ profiles }));
  return await fleet.worker("worker-1", { BERTH_CONFIG: file, BERTH_MOUNTS: "/" });
}

describe("fleet whose profile has egress rules", () => {
  test("with egress rules pip, npm and fetch reach a mirror, and each job's traffic is reported", async ({
    fleet,
  }) => {
    await using mirror = await openMirror();
    const { port } = mirror;
    const worker = await workerWith(fleet, [`127.0.0.1:${port}`]);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await acme.grant({ profiles: ["open", "only"] });

    const pip = await acme.exec(
      `PYTHONPATH=/opt/py python3 -m pip install --no-cache-dir --disable-pip-version-check --target lib --index-url http://127.0.0.1:${port}/simple berth-demo && PYTHONPATH=lib python3 -c 'import berth_demo; print(berth_demo.answer())'`,
    );
    expect(pip.stdout, pip.stderr).toMatch(/Successfully installed berth-demo-1\.0[\s\S]*42/);
    expect(pip.egress).toMatchObject({ shared: false, hosts: [{ host: "127.0.0.1", port, denied: 0 }] });
    expect(pip.egress?.receivedBytes).toBeGreaterThan(mirror.wheel.length);
    expect(await readFile(join(fleet.workspaces, "acme", "lib", "berth_demo.py"), "utf8")).toContain("42");

    const npm = await acme.exec(
      `export PATH=$PATH:/opt/node; node /opt/npm/bin/npm-cli.js install --no-audit --no-fund --no-update-notifier --registry http://127.0.0.1:${port}/npm/ berth-demo && node -e 'console.log(require("berth-demo")())'`,
    );
    expect(npm.stdout, npm.stderr).toMatch(/added 1 package[\s\S]*42/);
    expect(mirror.seen).toContain("/npm/berth-demo-1.0.0.tgz");

    const denied = await acme.exec("curl -sS http://pypi.example/simple/");
    expect(denied.stdout).toContain('Ask the operator to add "pypi.example:80"');
    expect(denied.egress?.hosts).toMatchObject([{ host: "pypi.example", port: 80, denied: 1 }]);
    await expect.poll(() => worker.log).toMatch(/"event":"egress\.used"[^\n]*pypi\.example/);
    const redis = fleet.redis.connect();
    await expect
      .poll(() => new EgressLog(redis).list("acme", { limit: 1 }))
      .toMatchObject([{ sandbox: "acme", worker: "worker-1", hosts: [{ host: "pypi.example", denied: 1 }] }]);

    // For sandboxes whose commands have no way out at all.
    const only = { profile: "only", session: "only", scope: "session" } as const;
    const url = `http://127.0.0.1:${port}/moved`;
    const got = await acme.fetch(url, "in/data.csv", only);
    const text = "a,b\n1,2\n";
    expect(got).toMatchObject({
      ...{ outcome: { kind: "done" }, size: text.length, type: "text/csv", redirects: 1, status: 200 },
      sha256: createHash("sha256").update(text).digest("hex"),
      egress: { receivedBytes: text.length },
    });
    expect((await acme.exec("cat in/data.csv; ls -A in; env | grep -ic proxy", only)).stdout).toBe(
      `${text}data.csv\n0\n`,
    );
    const refused = async (from: string, more = {}) => {
      const { outcome } = await acme.fetch(from, "in/x", { ...only, ...more });
      return outcome.kind === "refused" ? `${outcome.code}: ${outcome.message}` : outcome.kind;
    };
    expect(await refused("http://169.254.169.254/latest/meta-data/")).toMatch(
      /^egress-denied: .*Ask the operator/,
    );
    expect(await refused("http://2852039166/")).toMatch(/^egress-denied/);
    expect(await refused(`http://127.0.0.1:${port}/away`)).toMatch(/^egress-denied: 127\.0\.0\.1:9 /);
    expect(await refused("file:///etc/passwd")).toMatch(/^egress-denied/);
    expect(await refused(`http://127.0.0.1:${port}/gone`)).toMatch(/^fetch-failed: .*404/);
    expect(await refused(`http://127.0.0.1:${port}/data.csv`, { maxBytes: 4 })).toMatch(
      /^fetch-failed: .*larger/,
    );
    expect(await refused(`http://127.0.0.1:${port}/data.csv`, { sha256: "0".repeat(64) })).toMatch(
      /^mismatch/,
    );
    expect((await acme.exec("ls -A in", only)).stdout).toBe("data.csv\n");

    // A layer below takes some of the rules, and no others.
    const other = { settings: { egress: [`127.0.0.1:${port}`, "pypi.org"] } };
    expect((await acme.exec("true", other)).outcome).toMatchObject({ kind: "refused", code: "not-allowed" });
    const { outcome } = await acme.exec("true", { profile: "open", session: "open", scope: "session" });
    expect(outcome).toMatchObject({ kind: "refused", code: "egress-unavailable" });
  });
});
