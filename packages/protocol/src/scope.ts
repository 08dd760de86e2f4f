import { z } from "zod";

/** Which jobs share a sandbox. */
export const scope = z.enum(["tenant", "session", "agent", "shared"]);
export type Scope = z.infer<typeof scope>;

/** What jobs get that name none. Never the sandbox that all tenants share: that has to be asked for. */
export const defaultScope = scope.exclude(["shared"]);
export type DefaultScope = z.infer<typeof defaultScope>;

/** Where no layer says it. */
export const builtInScope: DefaultScope = "tenant";
