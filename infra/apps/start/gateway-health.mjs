/** Health check: exits with 0 if the gateway answers. /readyz reports whether the fleet is ready. */
const DEADLINE_MS = 4_000;

const address = `http://127.0.0.1:${process.env.BERTH_GATEWAY_PORT || "8080"}/healthz`;
try {
  const answer = await fetch(address, { signal: AbortSignal.timeout(DEADLINE_MS) });
  process.stdout.write(`${answer.status}\n`);
  process.exitCode = answer.ok ? 0 : 1;
} catch (error) {
  process.stdout.write(`${error.message}\n`);
  process.exitCode = 1;
}
