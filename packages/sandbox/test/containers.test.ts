import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Containers } from "../src/docker/containers.ts";
import { Engine } from "../src/docker/engine.ts";

test("a container that the engine makes after the deadline is removed with its volumes", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-late-"));
  const socketPath = join(folder, "engine.sock");
  const givenUp = Promise.withResolvers<void>();
  const removed = Promise.withResolvers<string>();
  const engine = http.createServer((request, response) => {
    request.resume();
    if (request.method === "DELETE") {
      removed.resolve(request.url ?? "");
      response.writeHead(204).end();
    } else
      void givenUp.promise.then(() =>
        response.writeHead(201, { "content-type": "application/json" }).end('{"Id":"late"}'),
      );
  });
  await new Promise<void>((resolve) => engine.listen(socketPath, resolve));
  const containers = new Containers(
    new Engine({ host: `unix://${socketPath}`, deadlineMs: 100, slowDeadlineMs: 100 }),
  );
  await expect(containers.create({ Image: "any" }, {})).rejects.toMatchObject({ code: "engine-timeout" });
  givenUp.resolve();
  const url = new URL(await removed.promise, "http://engine");
  expect(url.pathname).toBe("/containers/late");
  expect([url.searchParams.get("force"), url.searchParams.get("v")]).toEqual(["true", "true"]);
  await new Promise((resolve) => engine.close(resolve));
  await rm(folder, { recursive: true });
});
