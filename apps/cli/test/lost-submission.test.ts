import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Fault } from "@berth/protocol";
import { describe, expect, test } from "vitest";
import { resumeCommand } from "../src/batch/resume-command.ts";
import { complaintOf } from "../src/complaint.ts";
import { HttpDoor } from "../src/door/http-door.ts";

const order = { tenant: "acme", request: { kind: "exec", command: "true" } } as const;

describe("job whose submission failed", () => {
  test("a job whose submission failed is named with its id, and how to submit it again, when Redis did not answer", () => {
    const context = { address: "x", detail: "timed out", jobId: "job-1", accepted: "unknown" } as const;
    const complaint = complaintOf(new Fault("redis-unreachable", context));
    expect(complaint?.message).toContain("the job job-1 may have been accepted");
    expect(complaint?.advice[0]).toContain("--id job-1");
  });

  test("a job whose submission failed is sent again with the same id, and named with it when the gateway stays away", async () => {
    const ids: string[] = [];
    const server = createServer(async (request, response) => {
      if (request.method === "GET") return void response.end("{}");
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      ids.push(JSON.parse(Buffer.concat(chunks).toString()).id);
      request.socket.resetAndDestroy();
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const door = await HttpDoor.open({ url, key: undefined, outageMs: 500 });
    const error = await door.submit(order).catch((thrown: unknown) => thrown);
    await door.close();
    server.close();
    expect(ids.length).toBeGreaterThan(1);
    expect(new Set(ids).size).toBe(1);
    expect(complaintOf(error)).toMatchObject({ code: "gateway-unreachable", exitCode: 69 });
    expect(complaintOf(error)?.message).toContain(`the job ${ids[0]} may have been accepted`);
    expect(complaintOf(error)?.advice[0]).toContain(`--id ${ids[0]}`);
  });
});

test("the command that goes on with a batch has every flag, and quotes what a shell would split", () => {
  const flags = {
    id: "b",
    out: "it's.jsonl",
    artifacts: "a b",
    labels: ["run=7"],
    "in-flight": "8",
    json: true,
  };
  expect(resumeCommand("jobs.jsonl", flags)).toBe(
    "berth batch run jobs.jsonl --id b --out 'it'\\''s.jsonl' --artifacts 'a b' --in-flight 8 --labels run=7 --json",
  );
});
