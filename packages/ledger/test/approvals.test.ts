import { redisKeys, sandboxKey, tenantId, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { Approvals } from "../src/approvals/approvals.ts";
import { JobEvents } from "../src/events/job-events.ts";
import { Leases } from "../src/leases/leases.ts";
import { submitJob } from "../src/queues/submit.ts";
import { jobOf } from "./support.ts";

const acme = sandboxKey.parse("acme");
const minute = 60_000;

function asked(jobId: string, digest: string, { tenant = "acme", sandbox = sandboxKey.parse(tenant) } = {}) {
  const shown = `command: ${digest}`;
  return { jobId, tenant, sandbox, session: "main", kind: "exec", preview: shown, whole: shown, digest };
}

const approve = (digest: string) => ({ decision: "approved", digest, by: "me", reason: "" }) as const;

async function finish(redis: Redis, jobId: string): Promise<void> {
  const instance = "w1";
  const taken = await new Leases(redis).take(acme, { worker: workerId.parse(instance), instance }, minute);
  if (!taken.taken) throw new Error(taken.why);
  await submitJob(redis, acme, jobOf(jobId));
  const to = { key: acme, epoch: taken.epoch, instance, jobId, ends: { attempt: 1, leaves: true } };
  const result = {
    outcome: { kind: "exited", code: 0 },
    value: {},
    timing: { wallMs: 1, cpuMs: 1 },
  } as const;
  expect(await new JobEvents(redis).publish(to, [{ type: "finished", result }])).toBe("published");
}

describe("approval", () => {
  test("an approval is of one digest: a job of the same id that would run something else waits again", async ({
    redis,
  }) => {
    const approvals = new Approvals(redis.connect());
    expect(await approvals.ask(asked("j", "one"), minute)).toMatchObject({ state: "asked" });
    expect(await approvals.decide(acme, "j", approve("one"))).toBe("decided");
    expect(await approvals.ask(asked("j", "one"), minute)).toEqual({ state: "approved" });
    expect(await approvals.ask(asked("j", "two"), minute)).toMatchObject({ state: "asked" });
    expect(await approvals.ask(asked("j", "one"), minute)).toMatchObject({ state: "asked" });
  });

  test("an approval with the digest of an older request is refused, and a refusal without a digest counts", async ({
    redis,
  }) => {
    const approvals = new Approvals(redis.connect());
    await approvals.ask(asked("j", "one"), minute);
    await approvals.ask(asked("j", "two"), minute);
    expect(await approvals.decide(acme, "j", approve("one"))).toBe("changed");
    expect(await approvals.decide(acme, "j", approve(""))).toBe("changed");
    const refusal = { decision: "refused", by: "me", reason: "no" } as const;
    expect(await approvals.decide(acme, "j", { ...refusal, digest: "one" })).toBe("changed");
    expect(await approvals.decide(acme, "j", { ...refusal, digest: undefined })).toBe("decided");
    expect(await approvals.ask(asked("j", "two"), minute)).toEqual({ state: "refused", reason: "no" });
  });

  test("a job's end removes its approval in the same step, and a later request for one is not recorded", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const approvals = new Approvals(commands);
    await approvals.ask(asked("done", "one"), minute);
    await approvals.decide(acme, "done", approve("one"));
    await approvals.ask(asked("open", "one"), minute);
    await finish(commands, "done");
    expect(await commands.exists(redisKeys.approval(acme, "done"))).toBe(0);
    expect((await approvals.list({ limit: 10 })).map(({ jobId }) => jobId)).toEqual(["open"]);
    expect(await approvals.ask(asked("done", "one"), minute)).toEqual({ state: "expired" });
    expect(await commands.exists(redisKeys.approval(acme, "done"))).toBe(0);
  });

  test("an approval that is asked for again while the list is read stays in the list", async ({ redis }) => {
    const approvals = new Approvals(redis.connect());
    await approvals.ask(asked("j", "one"), minute);
    const reading = redis.connect();
    const hmget = reading.hmget.bind(reading) as (...args: string[]) => Promise<(string | null)[]>;
    Object.assign(reading, {
      hmget: async (...args: string[]) => {
        await approvals.decide(acme, "j", approve("one"));
        const record = await hmget(...args);
        await approvals.ask(asked("j", "two"), minute);
        return record;
      },
    });
    await new Approvals(reading).list({ limit: 10 });
    expect(await approvals.list({ limit: 10 })).toMatchObject([{ jobId: "j", digest: "two" }]);
  });

  test("many approvals of one tenant hide none of another's, also in the sandbox that all tenants share", async ({
    redis,
  }) => {
    const approvals = new Approvals(redis.connect());
    const shared = sandboxKey.parse("shared.all");
    for (let index = 0; index < 30; index++) {
      await approvals.ask(asked(`own${index}`, "d", { tenant: "flood" }), minute);
      await approvals.ask(asked(`all${index}`, "d", { tenant: "flood", sandbox: shared }), minute);
    }
    await approvals.ask(asked("a", "d"), 2 * minute);
    await approvals.ask(asked("b", "d", { tenant: "globex", sandbox: shared }), 2 * minute);
    const listed = (await approvals.list({ limit: 4 })).map(({ jobId }) => jobId);
    expect(listed).toHaveLength(4);
    expect(listed).toEqual(expect.arrayContaining(["a", "b"]));
    const globex = { tenant: tenantId.parse("globex"), owners: ["globex", "shared"] };
    expect(await approvals.list({ limit: 1, ...globex })).toMatchObject([{ jobId: "b" }]);
  });
});
