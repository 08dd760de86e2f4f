export type { ArtifactsPort, KeepAnswer, PersistedFile } from "./artifacts/artifacts-port.ts";
export type { JobSandbox, RunContext } from "./run-context.ts";
export { runRequest } from "./run-request.ts";
