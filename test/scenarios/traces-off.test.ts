import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { Collector } from "../support/collector.ts";
import { busybox, type TestFleet } from "../support/fleet.ts";
import { type TestGateways, fleetTest as test } from "../support/gateway.ts";

const hook = fileURLToPath(new URL("../support/loaded-modules.mjs", import.meta.url));

/** Every module that a gateway and a worker load while a job goes from the one through the other. */
async function loadedBy(
  env: Record<string, string>,
  { fleet, gateways }: { fleet: TestFleet; gateways: TestGateways },
): Promise<{ gateway: string[]; worker: string[] }> {
  const listOf = (app: string) => join(fleet.redis.directory, `${app}-modules`);
  const watched = (app: string) => ({
    ...env,
    NODE_OPTIONS: `--import=${hook}`,
    LOADED_MODULES: listOf(app),
  });
  const worker = await fleet.worker("worker-1", { ...busybox, ...watched("worker") });
  const gateway = await gateways.start(watched("gateway"));
  const headers = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
  const body = { tenant: "acme", request: { kind: "exec", command: "true" } };
  const ran = await gateway.call("POST", "/v1/jobs?wait=60", { body, headers });
  expect(ran.body.result.outcome).toEqual({ kind: "exited", code: 0 });
  await gateway.stop();
  await worker.stopped(30_000);
  const lines = async (app: string) => (await readFile(listOf(app), "utf8")).split("\n");
  return { gateway: await lines("gateway"), worker: await lines("worker") };
}

/** What opens tracing, and what it loads for a collector: from source, or as parts of the shipped programs. */
const opener = /\/tracing\/open-tracing\.ts$|\/dist\/main\.js$/;
const sdk = /\/@opentelemetry\/sdk-trace\/|\/chunks\/otlp-tracing-/;

/** Without the API, which prom-client loads and which does nothing by itself. */
const ofVendor = (modules: readonly string[]) =>
  modules.filter((url) => /opentelemetry|otlp/.test(url) && !url.includes("/@opentelemetry/api/"));

describe("without a collector", () => {
  test.for([
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: "" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_SDK_DISABLED: "true" },
  ])(
    "without a collector neither the SDK nor an exporter of OpenTelemetry is loaded: %j",
    async (env, { fleet, gateways }) => {
      const { gateway, worker } = await loadedBy(env as Record<string, string>, { fleet, gateways });
      for (const modules of [gateway, worker]) {
        expect(modules.some((url) => opener.test(url))).toBe(true);
        expect(ofVendor(modules)).toEqual([]);
      }
    },
  );

  test("with a collector OpenTelemetry is loaded, so the check itself works", async ({ fleet, gateways }) => {
    await using collector = await Collector.start();
    const { gateway, worker } = await loadedBy(collector.env, { fleet, gateways });
    for (const modules of [gateway, worker]) {
      expect(ofVendor(modules).some((url) => sdk.test(url))).toBe(true);
    }
  });
});
