import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Berth } from "@berth/client";
import { describe, expect } from "vitest";
import { test } from "../support/redis.ts";

const program = fileURLToPath(new URL("../support/mistakes.mjs", import.meta.url));
const nameRule = "1 to 63 of a-z, 0-9, - and _, beginning and ending with a letter or digit";

interface Line {
  readonly what: string;
  readonly name?: string;
  readonly code?: string;
  readonly retry?: boolean;
  readonly message?: string;
  readonly fault: boolean;
}

describe("wrong value", () => {
  test("in plain JavaScript a wrong value is a fault with a code and what is allowed", async ({ redis }) => {
    const args = ["--conditions=@berth/source", program, redis.url];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const lines: Line[] = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.length).toBeGreaterThan(20);
    const codes = ["invalid-argument", "invalid-job", "invalid-schedule"];
    const raw = lines.filter(
      ({ code, retry, fault }) => !fault || !codes.includes(code ?? "") || retry !== false,
    );
    expect(raw).toEqual([]);
    const of = (what: string) => lines.find((line) => line.what === what);
    expect(of("tenant with a line feed")).toMatchObject({
      fault: true,
      code: "invalid-argument",
      message: `the tenant "Bad\\nName" is not valid: a tenant's name has a character that cannot be shown: U+000A`,
    });
    expect(of("worker to drain")?.message).toBe(
      `the worker "Bad Worker" is not valid: a worker id is ${nameRule}`,
    );
    expect(of("session")?.message).toContain(`session: a session's name begins or ends with a space`);
    expect(of("agent")?.message).toContain(`agent: an agent's name is empty`);
    expect(of("pool")?.message).toContain(`pool: a pool name is ${nameRule}`);
    expect(of("schedule")?.message).toContain(`id: a schedule id is ${nameRule}`);
    expect(of("tenant that is reserved")?.message).toContain("shared is reserved for the sandbox that all");
    expect(of("order's tenant reserved")?.message).toContain("shared is reserved for the sandbox that all");
    expect(of("job's id of the queue's own")?.message).toContain("a name that the queue uses itself");
    expect(of("job's id of a redriven job")?.message).toContain("-redrive-<n> are the fleet's own");
    expect(of("job's id of a scheduled run")?.message).toContain("id: a job id is 1 to 128 letters");
    expect(of("job's id of a tenant's own")?.message).toContain("id: a job id is 1 to 128 letters");
    expect(of("job's id")?.message).toContain("id: a job id is 1 to 128 letters, digits, - and _");
    expect(of("command missing")?.message).toContain("request.command");
  });

  test("an invalid tenant name throws at the call that was given it, with long values cut", async ({
    redis,
  }) => {
    await using berth = closing(new Berth({ redis: redis.url }));
    const long = "x".repeat(10_000);
    expect(() => berth.client.tenant(long)).toThrow(
      /^the tenant "x{80}…" is not valid: a tenant's name is longer/,
    );
  });
});

function closing(client: Berth) {
  return { client, [Symbol.asyncDispose]: () => client.close() };
}
