import { expect } from "vitest";
import { CliRun } from "../support/cli.ts";
import { fleetTest as test } from "../support/gateway.ts";
import { listen } from "../support/sse.ts";

test("files that agents leave over HTTP are kept, published, listed as text and read by id", async ({
  fleet,
  gateways,
}) => {
  await fleet.worker("worker-1");
  const gateway = await gateways.start();
  const call = async (name: string, body: object, session = "s1") => {
    const place = { tenant_id: "acme", session_id: session };
    return gateway.call("POST", `/v1/sandbox/${name}`, { body: { ...place, ...body } });
  };
  const kept = (answer: { body: { artifacts: { path: string }[] } }) =>
    answer.body.artifacts.map(({ path }) => path);

  const plot = await call("execute", { code: "open('plot.svg', 'w').write('<svg/>'); open('.hidden', 'w')" });
  expect(kept(plot), "new, wherever it is, unless hidden").toEqual(["plot.svg"]);
  const made = await call("bash", {
    command:
      "mkdir -p deep/er artifacts node_modules; echo a > deep/er/a.txt; echo b > artifacts/b; echo c > node_modules/c; cat plot.svg",
  });
  expect(kept(made), "what was there before is not kept again").toEqual(["artifacts/b", "deep/er/a.txt"]);
  expect(kept(await call("bash", { command: "echo d > d", new_files: false }))).toEqual([]);
  const many = await call("bash", { command: "mkdir many; for i in $(seq 40); do echo $i > many/$i; done" });
  expect(kept(many)).toHaveLength(32);
  const { body: manyJob } = await gateway.call("GET", `/v1/jobs/${many.body.job_id}`);
  expect(manyJob.result.value).toMatchObject({ artifactsRefusedCount: 8 });

  const [{ id }] = plot.body.artifacts;
  const there = await call("read", { artifact: id }, "another");
  expect(there.body.content, "of another session of the same tenant").toBe("<svg/>");
  const elsewhere = await gateway.call("POST", "/v1/sandbox/read", {
    body: { tenant_id: "evil", session_id: "s1", artifact: id },
  });
  expect(elsewhere.status).toBe(404);
  expect(JSON.stringify(elsewhere.body)).not.toContain("svg");

  const acme = fleet.client().tenant("acme");
  const place = { scope: "session", session: "s1" } as const;
  await acme.write("notes.md", "kept", { ...place, persist: true });
  const written = await acme
    .steps(
      [
        { kind: "write", path: "/workspace/x.txt", content: "one" },
        { kind: "edit", path: "x.txt", find: "one", replace: "three" },
        { kind: "edit", path: "x.txt", find: "absent", replace: "" },
      ],
      place,
    )
    .enqueued();
  await written.result;
  const { events } = await listen(gateway, `/v1/jobs/${written.id}/events`);
  expect(events.map(({ event }) => event)).toEqual(["started", "file", "file", "finished"]);
  expect(events[2]?.data).toMatchObject({ file: { path: "x.txt", size: 5 } });

  const root = await call("list", {});
  expect(root.body.text).toMatch(
    /^notes\.md \(4 bytes, text\/markdown, artifact \S{32}\)\n\n\[sandbox workspace\]\n/,
  );
  expect(root.body.text).toContain("\nd (2 bytes)\ndeep/\n");
  expect(root.body.persisted).toMatchObject([{ path: "notes.md" }]);

  const pid = "cat /proc/1/stat | cut -d' ' -f22; echo $HOSTNAME; cat plot.svg";
  const before = (await call("bash", { command: pid })).body.stdout;
  const url = `/v1/sandbox/sessions/acme/s1/stop`;
  expect((await gateway.fetch("POST", url)).status).toBe(204);
  const after = (await call("bash", { command: pid })).body.stdout;
  expect(after).toContain("<svg/>");
  expect(after).not.toBe(before);
  const env = { REDIS_URL: fleet.redis.url };
  const args = ["stop", "acme", "--scope", "session", "--session", "s1"];
  expect(await new CliRun(args, { env }).end()).toMatchObject({ code: 0 });
  expect((await call("bash", { command: pid })).body.stdout).not.toBe(after);
});
