import { randomBytes } from "node:crypto";
import { type Job, job as jobSchema, sandboxKey, secretName, type TenantId } from "@berth/protocol";
import { Scrubber } from "@berth/scrub";
import { Keyring, seal } from "@berth/secrets";
import { describe, expect, test } from "vitest";
import { KnownValues } from "../src/secrets/known-values.ts";
import { SandboxSecrets } from "../src/secrets/sandbox-secrets.ts";
import { TenantSecrets } from "../src/secrets/tenant-secrets.ts";

const tenant = "acme" as TenantId;
const keyring = Keyring.parse(randomBytes(32).toString("hex"));
if (typeof keyring === "string") throw new Error(keyring);
const sealed = (use: "store" | "job", name: string, value: string) =>
  seal(keyring, { use, tenant, name }, value);

function jobWith(own: Record<string, string> = {}): Job {
  const secrets = Object.fromEntries(
    Object.entries(own).map(([name, value]) => [name, sealed("job", name, value)]),
  );
  const request = { kind: "exec", command: "true" };
  return jobSchema.parse({ version: 1, id: "j", tenant, request, secrets });
}

function secretsOf(stored: Record<string, string>, mostBytes?: number) {
  const all = new Map(
    Object.entries(stored).map(([name, value]) => [secretName.parse(name), sealed("store", name, value)]),
  );
  const tenants = new TenantSecrets({ all: async () => all }, keyring as Keyring);
  const secrets = new SandboxSecrets(sandboxKey.parse(tenant), tenants, {}, new KnownValues(mostBytes));
  const give = (own?: Record<string, string>) => secrets.give(jobWith(own), { passthroughEnv: [] });
  const shows = (value: string) => secrets.scrubber.maskText(value) === value;
  return { give, shows, hostMask: () => secrets.hostMask() };
}

describe("secrets of a sandbox", () => {
  test("a line of a key of several lines is masked alone, as a search shows it, and an ordinary line is not", async () => {
    const body = Array.from({ length: 3 }, () => randomBytes(48).toString("base64"));
    const pem = [
      "-----BEGIN PRIVATE KEY-----",
      ...body,
      "not so secret, this one",
      "-----END PRIVATE KEY-----",
    ];
    const { give, shows } = secretsOf({ PEM: pem.join("\n") });
    await give();
    for (const line of body) expect(shows(line)).toBe(false);
    expect(shows("not so secret, this one")).toBe(true);
    expect(shows("-----BEGIN PRIVATE KEY-----")).toBe(true);
  });

  test("a job that needs no other secrets than one whose masks are being built begins with those masks", async () => {
    const stored = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [`S${index}`, randomBytes(24).toString("base64")]),
    );
    const { give, shows } = secretsOf(stored);
    const first = give();
    const seen = Promise.all(
      [give(), give({ MINE: "a-secret-of-its-own" })].map((one) =>
        one.then(() => {
          return Object.values(stored).filter(shows);
        }),
      ),
    );
    expect(await seen).toEqual([[], []]);
    await first;
    expect(shows("a-secret-of-its-own")).toBe(false);
  });

  test("a secret in the name of a host that a command asked for is masked, in lower case too", async () => {
    const { give, hostMask } = secretsOf({ KEY: "Stored-Secret-Value" });
    await give({ T: "0123456789ABCDEF" });
    const mask = hostMask();
    expect(mask("stored-secret-value.example")).toBe(`${"*".repeat(19)}.example`);
    expect(mask("a.0123456789abcdef.example")).toBe(`a.${"*".repeat(16)}.example`);
    expect(mask("pypi.org")).toBe("pypi.org");
  });

  test("a stored secret is masked on after more secrets of jobs than a sandbox keeps", async () => {
    const { give, shows } = secretsOf({ KEY: "stored-secret-value" }, 100_000);
    for (let round = 0; round < 40; round++) {
      const own = Object.fromEntries(
        Array.from({ length: 32 }, (_, index) => [`T${index}`, `token-${round}-${index}`]),
      );
      (await give(own)).release();
      expect(shows("stored-secret-value"), `round ${round}`).toBe(false);
    }
    expect(shows("stored-secret-value")).toBe(false);
    expect(shows("token-39-31")).toBe(false);
    expect(shows("token-0-0")).toBe(true);
  });

  test("the secrets of a running job are masked until its end, however many secrets other jobs bring", async () => {
    const { give, shows } = secretsOf({}, 20_000);
    const running = await give({ MINE: "secret-of-a-long-job" });
    for (let round = 0; round < 200; round++) (await give({ T: `token-of-job-${round}` })).release();
    expect(shows("secret-of-a-long-job")).toBe(false);
    running.release();
    for (let round = 0; round < 200; round++) (await give({ T: `later-token-${round}` })).release();
    expect(shows("secret-of-a-long-job")).toBe(true);
  });

  test("a job whose secrets cannot be masked beside those of running jobs is refused, and nothing is forgotten", async () => {
    const { give, shows } = secretsOf({ KEY: "stored-secret-value" }, 6_000);
    const running = await give({ MINE: "é".repeat(30) });
    await expect(give({ BIG: randomBytes(400).toString("base64") })).rejects.toMatchObject({
      code: "secret-refused",
      context: { reason: "many" },
    });
    for (const value of ["stored-secret-value", "é".repeat(30)]) expect(shows(value)).toBe(false);
    running.release();
    (await give({ MORE: "another-secret-value" })).release();
    expect(shows("another-secret-value")).toBe(false);
  });
});

test("a scrubber refuses values whose forms are more than its tables can have, and masks all of the most that they can", () => {
  const marks = (length: number, seed: number) =>
    Buffer.from(Array.from({ length }, (_, at) => "!*'()~_/ +"[(at * seed + at) % 10]).join(""));
  const many = Array.from({ length: 40 }, (_, index) =>
    Buffer.concat([randomBytes(8), marks(8_000, index + 1)]),
  );
  expect(() => new Scrubber(many)).toThrow(RangeError);
  const some = many.slice(0, 3);
  const scrubber = new Scrubber(some);
  for (const value of some) {
    const bytes = Buffer.from(value);
    scrubber.maskBytes(bytes);
    expect(bytes.equals(Buffer.alloc(value.length, "*"))).toBe(true);
  }
});
