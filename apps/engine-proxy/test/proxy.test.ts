import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Engine } from "../src/engine.ts";
import { EngineProxy } from "../src/proxy.ts";

let folder: string;
let proxySocket: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "berth-proxy-"));
  proxySocket = join(folder, "proxy.sock");
  const rules = {
    fleet: "t",
    workspacesRoot: folder,
    networks: ["none"],
    images: [],
    runtimes: [],
    users: [],
    rootless: false,
  };
  await new EngineProxy(new Engine(join(folder, "no-engine.sock")), rules, () => {}).listen(proxySocket);
});
afterEach(() => rm(folder, { recursive: true }));

test("a request for a stream whose body ends early gets 400, and the connection closes", async () => {
  const worker = connect(proxySocket);
  await once(worker, "connect");
  worker.end(
    "POST /containers/abc/attach HTTP/1.1\r\nHost: e\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 10\r\n\r\n{}",
  );
  const answer = await text(worker);
  expect(answer).toContain("HTTP/1.1 400 Bad Request");
  expect(answer).toContain("the body ended after 2 of 10 bytes");
});

test("a request for a stream with a whole body reaches the engine", async () => {
  const worker = connect(proxySocket);
  await once(worker, "connect");
  worker.write(
    "POST /containers/abc/attach HTTP/1.1\r\nHost: e\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 4\r\n\r\n{ ",
  );
  worker.write(" }");
  expect(await text(worker)).toContain("connect ENOENT");
});
