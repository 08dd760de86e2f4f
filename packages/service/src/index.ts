export { configComplaint, exitBadConfig, readEnvironment } from "./environment.ts";
export type { Sample } from "./metrics.ts";
export { Counter, Histogram, Metrics } from "./metrics.ts";
