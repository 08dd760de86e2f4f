export type { JobEvent, JobProgress, Publication, Published } from "./job-events.ts";
export { JobEvents, readEvent } from "./job-events.ts";
