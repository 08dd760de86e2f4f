export type { CustomTool } from "./custom-tools.ts";
export type { HttpMessage, HttpOptions } from "./http.ts";
export { answerMcpPost } from "./http.ts";
export type {
  Explained,
  FetchedArtifact,
  FleetPort,
  FollowedEvent,
  FollowedJob,
  FoundJob,
  Order,
  SandboxAddress,
  SandboxState,
} from "./port.ts";
export type { StdioOptions } from "./stdio.ts";
export { serveMcpStdio } from "./stdio.ts";
export { defaultAnswerWithinMs } from "./toolbox.ts";
