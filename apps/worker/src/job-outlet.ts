import type { SandboxProfile } from "@berth/protocol";
import type { DriverSandboxOptions } from "./driver-sandbox-options.ts";
import { Outlet } from "./secrets/outlet.ts";

/** Per job: a command can print a million keys. */
const mostLeaksReported = 20;

/** The outlet of one job. Reports each leaked key once. */
export function jobOutlet(
  { secrets, onLeak }: Pick<DriverSandboxOptions, "secrets" | "onLeak">,
  { tenant, jobId }: { readonly tenant: string; readonly jobId: string },
  { leaks }: SandboxProfile,
): Outlet {
  const blocked = leaks === "block";
  const reported = new Set<string>();
  return new Outlet({
    scrubber: () => secrets.scrubber,
    leaks,
    onLeak: ({ kind, encoding, fingerprint }) => {
      if (reported.size >= mostLeaksReported || reported.has(fingerprint)) return;
      reported.add(fingerprint);
      onLeak({ tenant, jobId, kind, encoding, fingerprint, blocked });
    },
  });
}
