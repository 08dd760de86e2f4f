import { z } from "zod";

/** Which jobs share a sandbox. */
export const scope = z.enum(["tenant", "session", "agent", "shared"]);
export type Scope = z.infer<typeof scope>;

/** Default scopes. Never `shared`: a job must ask for the sandbox that all tenants share. */
export const defaultScope = scope.exclude(["shared"]);
export type DefaultScope = z.infer<typeof defaultScope>;

/** The default if no layer sets one. */
export const builtInScope: DefaultScope = "tenant";
