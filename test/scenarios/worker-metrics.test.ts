import { expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

test("a worker serves the metrics of its process, its build and its jobs at the configured address, and nothing else", async ({
  fleet,
}) => {
  const worker = await fleet.worker("worker-1", { ...busybox, BERTH_WORKER_METRICS: "127.0.0.1:0" });
  const [, url = ""] = /"metrics":"([^"]+)"/.exec(worker.log) ?? [];
  const answer = await fetch(url);
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const text = await answer.text();
  expect(text).toMatch(/^berth_build_info\{app="worker",version="\d+\.\d+\.\d+"\} 1$/m);
  for (const name of [
    "process_resident_memory_bytes",
    "process_open_fds",
    "nodejs_eventloop_lag_p99_seconds",
  ])
    expect(text).toMatch(new RegExp(`^${name} [\\d.e+-]+$`, "m"));
  expect((await fetch(new URL("/", url))).status).toBe(404);
  expect((await fetch(url, { method: "POST" })).status).toBe(404);

  await fleet.client().tenant("acme").exec("sleep 0.1");
  const stages = async () =>
    [...(await (await fetch(url)).text()).matchAll(/^berth_job_stage_seconds_count\{(.*)\} 1$/gm)].length;
  await expect.poll(stages).toBe(4);

  const second = fleet.launch("worker-2", { ...busybox, BERTH_WORKER_METRICS: new URL(url).host });
  expect(await second.ended()).toBe(1);
  expect(second.log).toMatch(/^berth-worker: it cannot start: listen EADDRINUSE.*\n$/);

  await worker.stopped(30_000);
  await expect(fetch(url)).rejects.toThrow();
});
