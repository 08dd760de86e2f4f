import { expect, test } from "vitest";
import { HostTool } from "../src/docker/trees/host-tool.ts";

test("an init that cannot be run on the host is an answer with the reason, and no error that ends the worker", async () => {
  const tool = new HostTool("/missing/init");
  const answer = { error: "failed", detail: expect.stringContaining("ENOENT") };
  expect(await tool.ask("groups", "/")).toMatchObject(answer);
  const failing = new HostTool("/bin/false");
  expect(await failing.ask("groups", "/")).toMatchObject({ error: "failed" });
  await expect(tool.volume("delete", "/missing/tree")).rejects.toMatchObject({ code: "workspace-unusable" });
});
