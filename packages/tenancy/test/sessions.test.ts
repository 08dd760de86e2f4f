import { describe, expect, test } from "vitest";
import { Sessions } from "../src/sessions.ts";

interface Job {
  readonly id: string;
  readonly session: string;
}

function sessionsOf(parallel: number, ...ids: string[]): Sessions<Job> {
  const sessions = new Sessions<Job>(
    () => parallel,
    ({ session }) => session,
  );
  for (const id of ids) sessions.add({ id, session: id.slice(0, 1) });
  return sessions;
}

function takeAll(sessions: Sessions<Job>): string[] {
  const taken: string[] = [];
  for (let job = sessions.take(); job; job = sessions.take()) taken.push(job.id);
  return taken;
}

describe("jobs of one session", () => {
  test("jobs of one session begin one at a time, in order of arrival", () => {
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
  test("jobs of different sessions begin side by side, past those that wait for their session", () => {
    const sessions = sessionsOf(4, "a1", "a2", "a3", "b1", "c1");
    expect(takeAll(sessions)).toEqual(["a1", "b1", "c1"]);
    expect({ running: sessions.running, parked: sessions.parked }).toEqual({ running: 3, parked: 2 });
  });

  test("no more sessions run at once than allowed, and the first in line is next", () => {
    const sessions = sessionsOf(2, "a1");
    const jobs = { b1: { id: "b1", session: "b" } };
    sessions.add(jobs.b1);
    for (const id of ["c1", "d1"]) sessions.add({ id, session: id.slice(0, 1) });
    expect(takeAll(sessions)).toEqual(["a1", "b1"]);
    sessions.done(jobs.b1);
    expect(takeAll(sessions)).toEqual(["c1"]);
  });
});

describe("job that has not begun", () => {
  test("a job that has not begun can be taken out of the line, which closes behind it", () => {
    const sessions = sessionsOf(1, "a1", "a2", "a3");
    expect(sessions.remove(({ id }) => id === "a2")?.id).toBe("a2");
    expect(sessions.remove(({ id }) => id === "a2")).toBeUndefined();
    expect(sessions.waiting.map(({ id }) => id)).toEqual(["a1", "a3"]);
  });

  test("emptying the sessions returns all parked jobs in order, and running jobs keep their sessions busy", () => {
    const sessions = sessionsOf(1, "a1", "b1", "a2");
    const running = sessions.take();
    expect(sessions.empty().map(({ id }) => id)).toEqual(["b1", "a2"]);
    sessions.add({ id: "a3", session: "a" });
    expect({ parked: sessions.parked, next: sessions.take() }).toEqual({ parked: 1, next: undefined });
    if (running) sessions.done(running);
    expect(sessions.take()?.id).toBe("a3");
  });
});

describe("successor of a job that ends", () => {
  const begun = (sessions: Sessions<Job>) => {
    const job = sessions.take();
    if (!job) throw new Error("none may begin");
    return job;
  };

  test("the successor of a job that ends is the next of its session, which is never free in between", () => {
    const sessions = sessionsOf(4, "a1", "a2", "a3");
    const ending = begun(sessions);
    const successor = sessions.successorOf(ending);
    expect(successor?.id).toBe("a2");
    if (successor) sessions.beginSuccessor(successor);
    sessions.done(ending);
    expect(takeAll(sessions)).toEqual([]);
    if (successor) sessions.done(successor);
    expect(takeAll(sessions)).toEqual(["a3"]);
  });

  test("a job has no successor while an earlier job of another session waits to run", () => {
    const sessions = sessionsOf(1, "a1", "b1", "a2");
    expect(sessions.successorOf(begun(sessions))).toBeUndefined();
  });

  test("a job has no successor while more jobs run than allowed", () => {
    let parallel = 2;
    const sessions = new Sessions<Job>(
      () => parallel,
      ({ session }) => session,
    );
    for (const id of ["a1", "b1", "a2"]) sessions.add({ id, session: id.slice(0, 1) });
    const ending = begun(sessions);
    begun(sessions);
    parallel = 1;
    expect(sessions.successorOf(ending)).toBeUndefined();
  });

  test("a job that does not run has no successor", () => {
    const sessions = sessionsOf(1, "a1");
    expect(sessions.successorOf({ id: "a0", session: "a" })).toBeUndefined();
  });
});
