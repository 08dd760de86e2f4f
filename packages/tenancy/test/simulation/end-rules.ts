import { deadReasonOf } from "../../src/retry.ts";
import type { SimEvent } from "./sim-event.ts";
import type { SimJob } from "./sim-job.ts";
import type { World } from "./world.ts";

/** What must hold after a long time without faults and without new jobs. */
export function checkEnd(world: World): void {
  const { rules, redis, settings, producer } = world;
  for (const job of rules.jobs.values()) {
    if (!rules.isFinished(job.id)) rules.broken("every accepted job ends", job.id, [job.id, job.key]);
    else checkStory(world, job, redis.events.of(job.id));
  }
  for (const key of settings.keys) {
    const queue = redis.queue(key);
    if (queue.left > 0)
      rules.broken("queues are empty at the end", `${key}: ${queue.wait} | ${queue.active}`, [key]);
    if (redis.leases.isLive(key)) rules.broken("an idle sandbox is given up", key, [key]);
    if (redis.leases.pending.has(key)) rules.broken("nothing is pending at the end", key, [key]);
  }
  for (const id of producer.waiting) rules.broken("a client that waits for a job gets its end", id, [id]);
  if (rules.running.size > 0) rules.broken("nothing runs at the end", `${rules.running.size} commands`, []);
}

/** What must hold after all workers were drained. */
export function checkStopped({ rules, workers }: World): void {
  for (const { current } of workers)
    for (const left of current.leftovers)
      rules.broken("nothing is left when a worker has stopped", left, [current.name]);
}

/** The events of one job: no holder begins it twice, and its output is published once and in order. */
function checkStory({ rules, redis }: World, job: SimJob, events: readonly SimEvent[]): void {
  const about = [job.id, job.key];
  if (rules.wasForgotten(job.id)) return;
  const begun = events.filter((event) => event.type === "started");
  const names = begun.map(({ epoch, attempt }) => `${epoch}/${attempt}`);
  if (new Set(names).size !== names.length) rules.broken("a holder begins a job once", job.id, about);
  const last = events.findLastIndex((event) => event.type === "started");
  const ofLast = events.slice(last + 1);
  const end = events.at(-1);
  if (end?.type !== "finished") return;
  const output = ofLast.map((event) => (event.type === "output" ? event.text : "")).join("");
  const printed = job.commands.flatMap(({ chunks }) => chunks).join("");
  const isWhole = end.result.outcome.kind === "exited" && end.result.outcome.code === 0;
  if (isWhole ? output !== printed : !printed.startsWith(output))
    rules.broken("output is published once and in order", `${job.id}: ${output} | ${printed}`, about);
  if (ofLast.filter((event) => event.type === "artifact").length > 1)
    rules.broken("an artifact is published once", job.id, about);
  const retried = events.flatMap((event) => (event.type === "retrying" ? [event.attempt] : []));
  if (retried.some((attempt, index) => attempt !== index + 1))
    rules.broken("attempts follow each other", `${job.id}: ${retried}`, about);
  if (
    deadReasonOf(job.job, end.result.outcome) !== undefined &&
    !redis.deadLetters.has(job.id) &&
    !rules.hasVanished(job.id)
  )
    rules.broken("a job that needs an operator becomes a dead letter", job.id, about);
}
