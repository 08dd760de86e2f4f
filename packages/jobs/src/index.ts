export type { ArtifactsPort, KeepAnswer, PersistedFile } from "./artifacts/artifacts-port.ts";
export type { DownloadPort } from "./kinds/fetch.ts";
export type { JobSandbox, RunContext } from "./run-context.ts";
export { Refusal } from "./run-context.ts";
export { runRequest } from "./run-request.ts";
export { diffPaths } from "./text/diff-paths.ts";
