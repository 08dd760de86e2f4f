import { Complaint } from "../complaint.ts";
import type { Config } from "../config.ts";
import { HttpCalls } from "../door/http-call.ts";
import { clockFinding } from "./clock.ts";
import { type Finding, tellerOf } from "./finding.ts";

const { ok, warn, bad } = tellerOf("gateway");

/** The gateway that BERTH_URL names, and the key. */
export async function* gatewayChecks({ BERTH_URL: url, BERTH_KEY: key }: Config): AsyncGenerator<Finding> {
  if (url === undefined) return;
  const calls = new HttpCalls(url, key);
  try {
    const beforeMs = Date.now();
    const response = await calls.response("GET", "/healthz");
    yield ok(`a gateway answers at ${calls.address}`);
    // Its header has seconds only; half of one is what that is off by on average.
    const saidMs = Date.parse(response.headers.get("date") ?? "") + 500;
    if (!Number.isNaN(saidMs))
      yield clockFinding("gateway", "the gateway", saidMs - (beforeMs + Date.now()) / 2);
    yield await readiness(calls);
    await calls.json("GET", "/v1/schedules");
    yield ok(key === undefined ? "it asks for no key" : "BERTH_KEY opens it");
    if (
      key !== undefined &&
      url.startsWith("http:") &&
      !/^(localhost|127\.|\[::1\])/.test(new URL(url).hostname)
    )
      yield warn("BERTH_KEY travels in clear text", "put TLS before the gateway and use https://");
  } catch (error) {
    if (!(error instanceof Complaint)) throw error;
    yield bad(error.message, error.advice[0] ?? "look at the gateway's log");
  } finally {
    calls.close();
  }
}

async function readiness(calls: HttpCalls): Promise<Finding> {
  const response = await fetch(`${calls.address}/readyz`);
  const { ready, reasons } = (await response.json()) as { ready: boolean; reasons: string[] };
  return ready
    ? ok("it is ready for work")
    : warn(`it is not ready: ${reasons.join("; ")}`, "see the reasons");
}
