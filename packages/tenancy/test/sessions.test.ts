import { describe, expect, test } from "vitest";
import { Sessions } from "../src/sessions.ts";

interface Job {
  readonly id: string;
  readonly session: string;
}

function sessionsOf(parallel: number, ...ids: string[]): Sessions<Job> {
  const sessions = new Sessions<Job>(parallel, ({ session }) => session);
  for (const id of ids) sessions.add({ id, session: id.slice(0, 1) });
  return sessions;
}

function takeAll(sessions: Sessions<Job>): string[] {
  const taken: string[] = [];
  for (let job = sessions.take(); job; job = sessions.take()) taken.push(job.id);
  return taken;
}

describe("jobs of one session", () => {
  test("begin one at a time, in order of arrival", () => {
    const sessions = sessionsOf(4, "a1", "a2", "a3");
    const begun: string[] = [];
    for (let job = sessions.take(); job; job = sessions.take()) {
      expect(sessions.take()).toBeUndefined();
      begun.push(job.id);
      sessions.done(job);
    }
    expect(begun).toEqual(["a1", "a2", "a3"]);
  });
});

describe("jobs of different sessions", () => {
  test("begin side by side, past those that wait for their session", () => {
    const sessions = sessionsOf(4, "a1", "a2", "a3", "b1", "c1");
    expect(takeAll(sessions)).toEqual(["a1", "b1", "c1"]);
    expect({ running: sessions.running, parked: sessions.parked }).toEqual({ running: 3, parked: 2 });
  });

  test("are no more at once than may be, and the first in line is next", () => {
    const sessions = sessionsOf(2, "a1", "b1", "c1", "d1");
    expect(takeAll(sessions)).toEqual(["a1", "b1"]);
    sessions.done({ id: "b1", session: "b" });
    expect(takeAll(sessions)).toEqual(["c1"]);
  });
});

describe("a job that has not begun", () => {
  test("can be taken out of the line, which closes behind it", () => {
    const sessions = sessionsOf(1, "a1", "a2", "a3");
    expect(sessions.remove(({ id }) => id === "a2")?.id).toBe("a2");
    expect(sessions.remove(({ id }) => id === "a2")).toBeUndefined();
    expect(sessions.waiting.map(({ id }) => id)).toEqual(["a1", "a3"]);
  });

  test("is given back in order with all others, and those that run stay busy", () => {
    const sessions = sessionsOf(1, "a1", "b1", "a2");
    const running = sessions.take();
    expect(sessions.empty().map(({ id }) => id)).toEqual(["b1", "a2"]);
    sessions.add({ id: "a3", session: "a" });
    expect({ parked: sessions.parked, next: sessions.take() }).toEqual({ parked: 1, next: undefined });
    if (running) sessions.done(running);
    expect(sessions.take()?.id).toBe("a3");
  });
});
