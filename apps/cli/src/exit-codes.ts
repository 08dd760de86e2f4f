/** From sysexits.h, for scripts. Every other error is 1. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 64,
  unreachable: 69,
  badConfig: 78,
  timedOut: 124,
  hungUp: 129,
  interrupted: 130,
  brokenPipe: 141,
  terminated: 143,
} as const;
