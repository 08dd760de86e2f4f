import { Fault } from "@berth/protocol";

/** The error that `init clone`, `init clear` and `init volume` write. */
export interface ToolError {
  readonly error: string;
  readonly detail: string;
  /** In the tree. */
  readonly path?: string | undefined;
}

const shownPathMost = 200;

/** An error that the tenant can mend is a refusal of the snapshot. Any other is the host's. */
export function treeFault(
  { error, detail, path = "" }: ToolError,
  options?: { readonly cause: unknown },
): Fault {
  const shown = path === "" ? "a file" : printable(path);
  switch (error) {
    case "unreadable":
      return new Fault(
        "snapshot-refused",
        { reason: "unreadable", detail: `${shown} cannot be read: ${detail}` },
        options,
      );
    case "no-space":
      return new Fault(
        "snapshot-refused",
        { reason: "no-space", detail: `there is no room for the copy: ${detail}` },
        options,
      );
    case "too-long":
      return new Fault(
        "snapshot-refused",
        { reason: "too-long", detail: "a path in the workspace is longer than 4095 bytes" },
        options,
      );
    default:
      return new Fault("workspace-unusable", { path: shown, detail }, options);
  }
}

/** The tenant chose the name. */
function printable(path: string): string {
  const text = path.replace(/[^\x20-\x7e]/g, "?");
  return text.length <= shownPathMost ? text : `${text.slice(0, shownPathMost - 1)}…`;
}
