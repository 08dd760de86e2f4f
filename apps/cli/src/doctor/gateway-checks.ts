import { z } from "zod";
import { Complaint } from "../complaint.ts";
import type { Config } from "../config.ts";
import { HttpCalls } from "../door/http-call.ts";
import { clockFinding } from "./clock.ts";
import { type Finding, findingsOf } from "./finding.ts";

const { ok, warn, bad } = findingsOf("gateway");
const readyAnswer = z.object({ ready: z.boolean(), reasons: z.array(z.string()) });

/** Checks the gateway of BERTH_URL, and the key. */
export async function* gatewayChecks({ gatewayUrl: url, gatewayKey: key }: Config): AsyncGenerator<Finding> {
  if (url === undefined) {
    yield warn("BERTH_URL is not set, so there is no gateway to look at", "set BERTH_URL (and BERTH_KEY)");
    return;
  }
  const calls = new HttpCalls(url, key);
  try {
    const beforeMs = Date.now();
    const response = await calls.response("GET", "/healthz");
    yield ok(`a gateway answers at ${calls.address}`);
    // The Date header has whole seconds, so on average it is half a second behind.
    const gatewayMs = Date.parse(response.headers.get("date") ?? "") + 500;
    if (!Number.isNaN(gatewayMs))
      yield clockFinding("gateway", "the gateway", gatewayMs - (beforeMs + Date.now()) / 2);
    yield await readiness(url);
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

/** Asks once: "not ready" is a finding here, so do not retry. */
async function readiness(url: string): Promise<Finding> {
  const response = await fetch(`${url.replace(/\/+$/, "")}/readyz`).catch(() => undefined);
  const answer = readyAnswer.safeParse(await response?.json().catch(() => undefined));
  if (!answer.success)
    return warn(
      "its /readyz has no readable answer",
      "check that BERTH_URL is the address of a Berth gateway",
    );
  const { ready, reasons } = answer.data;
  return ready
    ? ok("it is ready for work")
    : warn(
        `it is not ready for work: ${reasons.join("; ")}`,
        "start a worker, or look at the gateway's Redis: `berth doctor redis fleet` there",
      );
}
