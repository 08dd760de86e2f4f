import type { SandboxProfile } from "@berth/protocol";

export interface UnmetField {
  readonly field: string;
  readonly value: string;
}

/** The profile's field for which an engine refused a container, as its message shows. Undefined: the profile is not the cause. */
export function unmetField(
  detail: string,
  { network, gpus, apparmor, readOnlyRoot }: SandboxProfile,
): UnmetField | undefined {
  if (network !== "none" && network !== "bridge" && /network .* not found/i.test(detail))
    return { field: "network", value: network };
  if (gpus !== 0 && /device driver|gpu|nvidia/i.test(detail))
    return { field: "gpus", value: JSON.stringify(gpus) };
  if (apparmor !== undefined && /apparmor/i.test(detail)) return { field: "apparmor", value: apparmor };
  if (!readOnlyRoot && /storage-opt|quota/i.test(detail)) return { field: "readOnlyRoot", value: "false" };
  return undefined;
}
