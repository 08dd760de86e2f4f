import type { Berth, TenantUsage } from "@berth/client";
import { type CeilingName, fillsWorkspace, jobRequest, redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

const mebibyte = 1024 ** 2;
const hourMs = 3_600_000;
const ok = { kind: "exited", code: 0 };
const full = (ceiling: CeilingName) => ({ code: "tenant-full", context: { tenant: "evil", ceiling } });

async function used(berth: Berth, ceiling: CeilingName): Promise<number> {
  const { ceilings }: TenantUsage = await berth.tenant("evil").usage();
  return ceilings.find((use) => use.ceiling === ceiling)?.used ?? 0;
}

describe("a tenant that fills the workspaces of many sandboxes", () => {
  test("a tenant whose workspaces together pass its ceiling is refused jobs until it removes files", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    await berth.profiles.set("tenant.evil", { ceilings: { workspaceBytes: 20 * mebibyte } });
    const evil = berth.tenant("evil");
    const inSession = (session: string) => ({ scope: "session", session }) as const;
    const fill = "dd if=/dev/zero of=file bs=1M count=8 2> /dev/null";
    for (const session of ["one", "two", "three"])
      expect((await evil.exec(fill, inSession(session))).outcome).toEqual(ok);
    await expect.poll(() => used(berth, "workspaceBytes")).toBeGreaterThanOrEqual(24 * mebibyte);

    const refused = full("workspaceBytes");
    await expect(evil.exec(fill, inSession("one"))).rejects.toMatchObject(refused);
    await expect(evil.exec(fill, inSession("new"))).rejects.toMatchObject(refused);
    await expect(evil.write("other", "x", inSession("two"))).rejects.toMatchObject(refused);
    const later = berth.submit({
      ...{ tenant: "evil", delayMs: hourMs, request: { kind: "exec", command: "true" } },
    });
    await expect(later.enqueued()).rejects.toMatchObject(refused);
    expect((await berth.tenant("acme").exec(fill)).outcome).toEqual(ok);
    expect((await evil.list("", inSession("one"))).entries).toMatchObject([{ path: "file" }]);

    expect((await evil.remove("file", inSession("one"))).outcome).toEqual({ kind: "done" });
    await expect.poll(() => used(berth, "workspaceBytes")).toBeLessThan(20 * mebibyte);
    expect((await evil.exec("true", inSession("new"))).outcome).toEqual(ok);

    expect((await evil.exec(fill, inSession("one"))).outcome).toEqual(ok);
    await expect.poll(() => used(berth, "workspaceBytes")).toBeGreaterThanOrEqual(24 * mebibyte);
    await expect(evil.exec("true")).rejects.toMatchObject(refused);
    for (const session of ["one", "two", "three", "new"])
      expect((await evil.destroy(inSession(session))).outcome).toEqual({ kind: "done" });
    expect(await used(berth, "workspaceBytes")).toBe(0);
    expect(await fleet.redis.connect().exists(redisKeys.workspacesOf("evil"))).toBe(0);
    expect((await evil.exec("true")).outcome).toEqual(ok);
  });

  test("a tenant that fills the directories of agents, each under a name that comes once, is refused past the ceiling of their sum", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    await berth.profiles.set("profile.default", { agentAccess: "rw", toolsAccess: "rw" });
    await berth.profiles.set("tenant.evil", { ceilings: { workspaceBytes: 20 * mebibyte } });
    const evil = berth.tenant("evil");
    const fill = (agent: string) =>
      evil.exec("dd if=/dev/zero of=/agent/file bs=1M count=8 2> /dev/null", { agent });
    for (const agent of ["a1", "a2", "a3"]) expect((await fill(agent)).outcome).toEqual(ok);
    await expect.poll(() => used(berth, "workspaceBytes")).toBeGreaterThanOrEqual(24 * mebibyte);
    await expect(fill("a4")).rejects.toMatchObject(full("workspaceBytes"));
    // Each directory counts once, with any last user, and is measured again after a removal.
    const bytes = () => fleet.redis.connect().hgetall(redisKeys.workspacesOf("evil"));
    await expect
      .poll(async () => Object.keys(await bytes()).sort())
      .toEqual(["*", "/agent.a1", "/agent.a2", "/agent.a3", "/tools", "evil"].sort());
    await berth.profiles.set("tenant.evil", { ceilings: { workspaceBytes: 50 * mebibyte } });
    expect((await evil.exec("rm /agent/file", { agent: "a1" })).outcome).toEqual(ok);
    await expect.poll(() => used(berth, "workspaceBytes")).toBeLessThan(20 * mebibyte);
    const tools = "dd if=/dev/zero of=/tools/big bs=1M count=8 2> /dev/null";
    const other = { scope: "session", session: "other" } as const;
    expect((await evil.exec(tools, other)).outcome).toEqual(ok);
    await expect.poll(() => used(berth, "workspaceBytes")).toBeGreaterThanOrEqual(24 * mebibyte);
    // Both sandboxes have the tools, and one of them is destroyed: they are there once, and stay.
    expect((await evil.destroy(other)).outcome).toEqual({ kind: "done" });
    await expect.poll(async () => Number((await bytes())["/tools"])).toBeGreaterThanOrEqual(8 * mebibyte);
    const { "*": sum, ...parts } = await bytes();
    expect(Number(sum)).toBe(Object.values(parts).reduce((all, one) => all + Number(one), 0));
    expect(parts).not.toHaveProperty(["evil.s.other"]);
  });

  test("only requests that read, remove or end something pass the ceiling, also as steps", () => {
    const read = { kind: "read", path: "f" } as const;
    const fills = (request: object) => fillsWorkspace(jobRequest.parse(request));
    expect(fills({ kind: "steps", steps: [read, { kind: "remove", path: "f" }] })).toBe(false);
    expect(fills({ kind: "steps", steps: [read, { kind: "write", path: "f", content: "" }] })).toBe(true);
    expect(fills({ kind: "archive", direction: "out" })).toBe(false);
    expect(fills({ kind: "archive", direction: "in", content: "" })).toBe(true);
    expect(fills({ kind: "restore", name: "base" })).toBe(true);
  });
});

describe("a tenant whose jobs print as much as they can", () => {
  test("a tenant past its ceiling of results is refused jobs until results expire", async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const limit = 300_000;
    await berth.profiles.set("tenant.evil", { ceilings: { resultBytes: limit } });
    const evil = berth.tenant("evil");
    const print = "head -c 100000 /dev/zero | tr '\\0' x";
    let accepted = 0;
    const submitted = async () => {
      try {
        expect((await evil.exec(print)).outcome).toEqual(ok);
        accepted++;
        return true;
      } catch (error) {
        expect(error).toMatchObject(full("resultBytes"));
        return false;
      }
    };
    while (await submitted()) expect(accepted).toBeLessThan(5);
    // Each counts as what it printed, and as its result.
    expect(accepted).toBe(2);
    const kept = await used(berth, "resultBytes");
    expect(kept).toBeGreaterThanOrEqual(limit);
    expect((await berth.tenant("acme").exec(print)).outcome).toEqual(ok);
    await expect(evil.list("")).rejects.toMatchObject(full("resultBytes"));

    // The hour in which they expire is over.
    const redis = fleet.redis.connect();
    const counts = redisKeys.resultBytes("evil", "evil");
    expect(await redis.pttl(counts)).toBeGreaterThan(24 * hourMs);
    const hours = await redis.hgetall(counts);
    await redis.del(counts);
    await redis.hset(counts, String(Math.floor(Date.now() / hourMs) - 1), kept);
    expect(await used(berth, "resultBytes")).toBe(0);
    expect((await evil.exec("true")).outcome).toEqual(ok);
    const [after] = Object.keys(await redis.hgetall(counts));
    expect(Number(after)).toBeGreaterThanOrEqual(Number(Object.keys(hours)[0]));
    expect(await redis.hlen(counts), "and its count is gone").toBe(1);
  });
});
