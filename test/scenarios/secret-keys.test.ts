import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox, test } from "../support/fleet.ts";

const newKey = () => randomBytes(32).toString("base64");

test("the steps of docs/secrets.md replace the sealing key, and every job has its secrets throughout", async ({
  fleet,
}) => {
  const [old, fresh] = [newKey(), newKey()];
  const worker = (name: string, keys: readonly string[]) =>
    fleet.worker(name, { ...busybox, BERTH_SECRETS_KEY: keys.join(",") });
  const env = (keys: readonly string[]) => ({
    env: { REDIS_URL: fleet.redis.url, BERTH_SECRETS_KEY: keys.join(",") },
  });
  /** Each restarted in its turn; what runs goes on, on the other. */
  let round = 0;
  const restart = async (keys: readonly string[], running: Awaited<ReturnType<typeof worker>>[]) => {
    round++;
    const started = [];
    for (const [index, one] of running.entries()) {
      started.push(await worker(`worker-${round}-${index}`, keys));
      one.signal("SIGTERM");
      await one.ended();
    }
    return started;
  };
  const lengthOf = (name: string) => `printf %s "$${name}" | wc -c`;
  const acme = (keys: readonly string[]) => fleet.client({ secretsKey: keys.join(",") }).tenant("acme");
  const hasIt = async (keys: readonly string[], step: string) => {
    const own = { secrets: { OWN: "own-secret-of-the-job" } };
    const ran = await acme(keys).exec(`${lengthOf("STORED")}; ${lengthOf("OWN")}; echo $OWN`, own);
    expect(ran.stdout, step).toBe(`20\n21\n${"*".repeat(21)}\n`);
  };

  let workers = [await worker("worker-0-0", [old]), await worker("worker-0-1", [old])];
  const set = await runCli(["secret", "set", "acme", "STORED"], {
    ...env([old]),
    stdin: "twenty-bytes-exactly",
  });
  expect(set).toMatchObject({ code: 0 });
  await hasIt([old], "before");
  // It waits with what the old key has sealed.
  const globex = fleet.client({ secretsKey: old }).tenant("globex");
  await globex.pause();
  const waits = await globex.exec(lengthOf("OWN"), { secrets: { OWN: "waits-for-a-while" } }).enqueued();

  workers = await restart([old, fresh], workers);
  await hasIt([old], "1: the new key is the last");
  await hasIt([old, fresh], "1: also in the client");
  workers = await restart([fresh, old], workers);
  await hasIt([fresh, old], "2: the new key is the first");
  const again = await runCli(["secret", "reencrypt"], env([fresh, old]));
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("1 sealed anew") });
  expect((await runCli(["secret", "reencrypt"], env([fresh]))).stdout).toContain(
    "0 sealed anew, 1 unchanged",
  );
  await hasIt([fresh, old], "3: sealed anew");
  await globex.resume();
  expect(await waits.result).toMatchObject({ value: { stdout: "17\n" } });
  workers = await restart([fresh], workers);
  await hasIt([fresh], "4: the old key is gone");

  // What only the old key opens is refused with that reason, not run without it.
  const late = await acme([old]).exec("echo ran", { secrets: { OWN: "sealed-with-the-old" } });
  expect(late.outcome).toMatchObject({ kind: "refused", code: "secret-unreadable" });
});
