/** Why a program or script never began, from the words of the engine, its runtime or the shell. */
export function startProblem(text: string): "fork-failed" | "too-long" | "start-failed" {
  if (/resource temporarily unavailable|cannot allocate memory|can't fork|cannot fork/i.test(text))
    return "fork-failed";
  if (/argument list too long/i.test(text)) return "too-long";
  return "start-failed";
}
