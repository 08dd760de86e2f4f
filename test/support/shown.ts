import { type ExecResult, outputText } from "@berth/protocol";

/** What a test usually looks at. */
export function shown(result: ExecResult): {
  outcome: ExecResult["outcome"];
  stdout: string;
  stderr: string;
} {
  return {
    outcome: result.outcome,
    stdout: outputText(result.output, "stdout"),
    stderr: outputText(result.output, "stderr"),
  };
}
