import { whenNoSandbox } from "@berth/client";
import type { FleetPort, FollowedJob } from "@berth/mcp";
import { complaintOf } from "./complaint.ts";
import type { Door, DoorJob } from "./door.ts";

/** Searches at most this many of the tenant's most recently used sandboxes. */
const lookedThrough = 20;

/** The fleet as the MCP tools use it, through either door. */
export function mcpPort(
  door: Door,
  {
    tenant,
    onNoSandbox,
    onBug,
  }: {
    /** The tenant whose artifacts can be read. An admin key, too, is confined to it. */
    readonly tenant: string;
    readonly onNoSandbox: "refuse" | "wait";
    readonly onBug: (error: unknown) => void;
  },
): FleetPort {
  return {
    submit: async (order) => followed(await door.submit(order)),
    find: async (id) => {
      const job = await door.job(id);
      return job && { ...followed(job), sandbox: job.sandbox };
    },
    sandbox: async (owner, key) => {
      const known = await door.sandboxes({ tenant: owner, limit: lookedThrough });
      const found = known.find((one) => one.key === key);
      return found && { ...found, held: found.worker !== undefined };
    },
    artifact: async (id) => {
      const bytes = await door.artifact(id, { tenant });
      return bytes && { bytes };
    },
    ...(onNoSandbox === "wait"
      ? {}
      : {
          noSandbox: async (id, signal) => {
            const no = await whenNoSandbox({ why: () => door.why(id), signal });
            if (!no) return undefined;
            const message = no.why.reasons[no.index] ?? "";
            return { code: "no-sandbox", message, advice: ["the call was not carried out; try again later"] };
          },
        }),
    explain: (error) => {
      const complaint = complaintOf(error);
      if (complaint) return complaint;
      onBug(error);
      return {
        message: "berth mcp failed unexpectedly",
        code: "internal",
        advice: ["its stderr has the details; whether the call was carried out is not known"],
      };
    },
  };
}

function followed(job: DoorJob): FollowedJob {
  const { id } = job;
  return {
    id,
    events: (after, signal) => job.events(after, signal),
    status: () => job.status(),
    cancel: () => job.cancel(),
  };
}
