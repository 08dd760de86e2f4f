import { type ToolDefinition, toolArgumentsSchema } from "@berth/protocol";
import type { JobTool } from "./tools.ts";

/** A command that the operator defined; the port returns those that this sandbox's jobs may use. */
export interface CustomTool
  extends Pick<ToolDefinition, "description" | "parameters" | "effect" | "profile"> {
  readonly name: string;
}

/** Makes it a tool of one job. The worker checks the arguments again. */
export function jobToolOf({ name, description, parameters, effect, profile }: CustomTool): JobTool {
  return {
    name,
    title: name,
    description,
    readOnly: effect === "reads",
    destructive: effect === "changes",
    // A parameter of that name takes precedence over the session argument.
    shape: toolArgumentsSchema({ parameters }).shape,
    request: (args) => ({ kind: "tool", name, args: args as never }),
    profile,
  };
}
