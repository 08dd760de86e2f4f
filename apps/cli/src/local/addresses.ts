import type { LocalFleet } from "./local-fleet.ts";

/** What to do with a fleet that is up, to be copied from the terminal. */
export function addresses({ gatewayUrl, redisUrl }: LocalFleet): string {
  return `
  dashboard   ${gatewayUrl}/board
  HTTP API    ${gatewayUrl}/docs
  Redis       ${redisUrl}

In another terminal:

  export BERTH_URL=${gatewayUrl}
  npm run -s berth -- exec acme -- python3 -V
  npm run -s berth -- fleet

  curl -s ${gatewayUrl}/v1/sandbox/bash -H 'content-type: application/json' \\
    -d '{"tenant_id": "acme", "command": "echo hello from $(hostname)"}'
`;
}
