import type { JobResult } from "@berth/protocol";
import { expect, test } from "vitest";
import type { FleetPort, FollowedEvent, FoundJob, Order } from "../src/port.ts";
import { Toolbox } from "../src/toolbox.ts";

const done: JobResult = { outcome: { kind: "exited", code: 0 }, value: {}, timing: { wallMs: 1, cpuMs: 1 } };
const never = new AbortController().signal;

/** A fleet of one job, whose events are given; without `finished` it goes on until the reading ends. */
class ScriptedFleet implements FleetPort {
  readonly orders: Order[] = [];
  readonly cancelled: string[] = [];
  readonly #events: readonly FollowedEvent[];
  sandboxKey = "acme";
  state: "scheduled" | "running" = "running";

  constructor(events: readonly FollowedEvent[]) {
    this.#events = events;
  }

  async submit(order: Order): Promise<FoundJob> {
    this.orders.push(order);
    const events = this.#events;
    return {
      id: "j1",
      sandbox: this.sandboxKey,
      status: async () => this.state,
      cancel: async () => void this.cancelled.push("j1"),
      async *events(after, signal) {
        yield* events.filter(({ id }) => id > after);
        if (events.at(-1)?.type === "finished" || signal.aborted) return;
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        throw signal.reason;
      },
    };
  }

  find(id: string): Promise<FoundJob | undefined> {
    return id === "j1"
      ? this.submit({ tenant: "acme", request: { kind: "list" } })
      : Promise.resolve(undefined);
  }

  async sandbox() {
    return undefined;
  }

  async artifact() {
    return undefined;
  }

  explain(error: unknown) {
    return { message: String(error), code: "internal", advice: [] };
  }
}

const chunk = (id: string, text: string): FollowedEvent => ({ id, type: "stdout", bytes: Buffer.from(text) });
const address = { tenant: "acme", profile: "small" };

test("a job goes to the configured sandbox, in the call's session", async () => {
  const fleet = new ScriptedFleet([chunk("1-0", "hi\n"), { id: "2-0", type: "finished", result: done }]);
  const toolbox = new Toolbox(fleet, { address });
  const answer = await toolbox.run({ kind: "list" }, { cancelled: never, session: "beside" });
  expect(fleet.orders).toEqual([{ ...address, session: "beside", request: { kind: "list" } }]);
  expect(answer).toMatchObject({ content: [{ text: "hi\n" }], structuredContent: { state: "finished" } });
});

test("a call whose job takes too long is answered with the output so far, and the job is not cancelled", async () => {
  const fleet = new ScriptedFleet([chunk("1-0", "begun\n")]);
  const toolbox = new Toolbox(fleet, { address, answerWithinMs: 20 });
  const answer = await toolbox.run({ kind: "list" }, { cancelled: never });
  expect(answer.structuredContent).toMatchObject({ state: "running", job: "j1", after: "1-0" });
  expect(fleet.cancelled).toEqual([]);
});

test("a call that its client cancelled cancels the job, and the toolbox waits for that", async () => {
  const fleet = new ScriptedFleet([]);
  const toolbox = new Toolbox(fleet, { address });
  const gone = new AbortController();
  void toolbox.run({ kind: "list" }, { cancelled: gone.signal });
  gone.abort();
  await toolbox.finishOpenCalls();
  expect(fleet.cancelled).toEqual(["j1"]);
});

test("a server that stops answers its calls at once, and their jobs go on", async () => {
  const fleet = new ScriptedFleet([]);
  const stopping = new AbortController();
  const toolbox = new Toolbox(fleet, { address, stopping: stopping.signal });
  const answer = toolbox.run({ kind: "list" }, { cancelled: never });
  stopping.abort();
  expect((await answer).structuredContent).toMatchObject({ state: "running" });
  expect(fleet.cancelled).toEqual([]);
});

test("the client is notified of output as it comes, with progress that only grows", async () => {
  const fleet = new ScriptedFleet([chunk("1-0", "a"), chunk("2-0", "b")]);
  const notified: [number, string][] = [];
  const stopping = new AbortController();
  const toolbox = new Toolbox(fleet, { address, stopping: stopping.signal });
  const notify = async (progress: number, message: string) => {
    notified.push([progress, message]);
    stopping.abort();
  };
  await toolbox.run({ kind: "list" }, { cancelled: never, notify });
  expect(notified.map(([, message]) => message).join("")).toBe("ab");
  expect(notified.every(([progress], at) => progress > (notified[at - 1]?.[0] ?? 0))).toBe(true);
});

test("the output of a run that is repeated and that of the next run are never one text", async () => {
  const outcome = { kind: "exited", code: 1 } as const;
  const fleet = new ScriptedFleet([
    chunk("1-0", "first half, "),
    { id: "2-0", type: "retrying", outcome },
    chunk("3-0", "second half"),
    { id: "4-0", type: "finished", result: done },
  ]);
  const { content } = await new Toolbox(fleet, { address }).run({ kind: "list" }, { cancelled: never });
  expect(content).toMatchObject([{ text: expect.stringMatching(/^first half, \n\[.*\]\nsecond half/) }]);
});

test("a job that was approved meanwhile is not answered as one that waits, also when it is read from its beginning", async () => {
  const outcome = { kind: "refused", code: "approval-needed", message: "it waits for an approval" } as const;
  const events: FollowedEvent[] = [
    { id: "1-0", type: "retrying", outcome },
    chunk("2-0", "done\n"),
    { id: "3-0", type: "finished", result: done },
  ];
  const approved = await new Toolbox(new ScriptedFleet(events), { address }).job(
    { id: "j1", action: "wait" },
    { cancelled: never },
  );
  expect(approved).toMatchObject({ content: [{ text: "done\n" }], structuredContent: { state: "finished" } });
  const waiting = new ScriptedFleet(events.slice(0, 1));
  waiting.state = "scheduled";
  const asked = await new Toolbox(waiting, { address }).job(
    { id: "j1", action: "wait" },
    { cancelled: never },
  );
  expect(asked.structuredContent).toMatchObject({ state: "needs-approval" });
});

test("the tool job does not find or cancel a job of another sandbox", async () => {
  const fleet = new ScriptedFleet([]);
  fleet.sandboxKey = "acme.s.other";
  const toolbox = new Toolbox(fleet, { address: { tenant: "acme", scope: "session", session: "mine" } });
  for (const id of ["j1", "unknown"]) {
    const answer = await toolbox.job({ id, action: "cancel" }, { cancelled: never });
    expect(answer).toMatchObject({ isError: true, structuredContent: { code: "not-found" } });
  }
  expect(fleet.cancelled).toEqual([]);
});

test("an error of the fleet becomes an answer", async () => {
  const fleet = new ScriptedFleet([]);
  fleet.submit = () => Promise.reject(new Error("Redis is away"));
  const answer = await new Toolbox(fleet, { address }).run({ kind: "list" }, { cancelled: never });
  expect(answer).toMatchObject({
    isError: true,
    content: [{ text: "ERR: Error: Redis is away [internal]" }],
  });
});
