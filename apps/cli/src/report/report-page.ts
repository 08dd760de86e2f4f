import { writeFile } from "node:fs/promises";
import type { BatchStatistics } from "../batch/batch-statistics.ts";
import type { BatchSummary } from "../batch/batch-summary.ts";
export async function writeReportPage(file: string, _s: BatchSummary, _t: BatchStatistics) {
  await writeFile(file, "");
}
