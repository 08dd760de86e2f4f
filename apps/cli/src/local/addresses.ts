import type { LocalFleet } from "./local-fleet.ts";

/** How the user calls this program: as npm installed it, or in a clone. */
const berth = import.meta.url.includes("/node_modules/") ? "npx berth" : "npm run -s berth --";

/** What to try with a running fleet, to copy from the terminal. */
export function addresses({ gatewayUrl, redisUrl }: LocalFleet): string {
  return `
  dashboard   ${gatewayUrl}/board
  HTTP API    ${gatewayUrl}/docs
  Redis       ${redisUrl}

In another terminal:

  export BERTH_URL=${gatewayUrl}
  ${berth} exec acme -- python3 -V
  ${berth} fleet

  curl -s ${gatewayUrl}/v1/sandbox/bash -H 'content-type: application/json' \\
    -d '{"tenant_id": "acme", "command": "echo hello from $(hostname)"}'
`;
}
