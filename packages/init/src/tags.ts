/** Record tags of docs/init-protocol.md, by message. c/protocol.h has the same under the same names. */
export const HelloTag = { nonce: 1, leaseMs: 2, key: 3 } as const;

export const HelloAckTag = {
  nonce: 1,
  watchdogFired: 2,
  running: 3,
  buildId: 4,
  uid: 5,
  cgroup: 6,
  pid: 7,
  filtered: 8,
  links: 9,
  mountNamespace: 10,
  refused: 11,
} as const;

/** LINK has all three, LINK_PROOF the last. */
export const LinkTag = { name: 1, initProof: 2, workerProof: 3 } as const;
export const LinkedTag = { proof: 1, errno: 2 } as const;

export const ForwardTag = { port: 1 } as const;
export const ForwardedTag = { errno: 1 } as const;
/** In the link directory: where connections arrive that FORWARD takes. */
export const forwardSocket = "egress";

export const ExecTag = {
  arg: 1,
  env: 2,
  cwd: 3,
  flags: 4,
  timeoutMs: 5,
  graceMs: 6,
  drainMs: 7,
  credit: 8,
} as const;
export const ExecFlag = { stdinFollows: 1, killBackground: 2, noGrowth: 4 } as const;

/** What is left of the worker's lease; without it a PING is worth the whole of HELLO's. */
export const PingTag = { leftMs: 1 } as const;
/** Of SHUTDOWN, too. */
export const KillTag = { graceMs: 1 } as const;
/** Of STDIN_CREDIT, too. */
export const CreditTag = { bytes: 1 } as const;

export const FileTag = {
  op: 1,
  path: 2,
  path2: 3,
  flags: 4,
  offset: 5,
  length: 6,
  mode: 7,
  size: 8,
  sha256: 9,
  credit: 10,
  pattern: 11,
  maxItems: 12,
  budget: 13,
  maxDepth: 14,
  maxLineBytes: 15,
  include: 16,
  name: 17,
} as const;

export const FileOp = {
  read: 1,
  write: 2,
  stat: 3,
  list: 4,
  remove: 5,
  move: 6,
  mkdir: 7,
  glob: 8,
  grep: 9,
  usage: 10,
  unpack: 11,
  pack: 12,
} as const;
export type FileOp = (typeof FileOp)[keyof typeof FileOp];

export const ReadFlag = { hash: 1 } as const;
export const WriteFlag = { append: 1, parents: 2, exclusive: 4 } as const;
export const StatFlag = { hash: 1, noFollow: 2 } as const;
export const ListFlag = { recursive: 1 } as const;
export const RemoveFlag = { recursive: 1, missingOk: 2 } as const;
export const MoveFlag = { overwrite: 1, parents: 2 } as const;
export const MkdirFlag = { parents: 2 } as const;
export const GlobFlag = { dot: 1 } as const;
export const GrepFlag = { regex: 1, ignoreCase: 2 } as const;
export const UnpackFlag = { check: 1, each: 2 } as const;
export const PackFlag = { recursive: 1, follow: 2 } as const;

export const StartedTag = { pid: 1 } as const;

export const ExitTag = {
  kind: 1,
  value: 2,
  reason: 3,
  oomKills: 4,
  wallMicros: 5,
  cpuMicros: 6,
  maxRssKib: 7,
  background: 8,
  held: 9,
  stuck: 10,
} as const;
export const ExitKind = { exited: 1, signalled: 2 } as const;
export const ExitReason = { itself: 0, timeout: 1, kill: 2, watchdog: 3, collateral: 4, hidden: 5 } as const;

export const FailTag = { code: 1, message: 2, errno: 3 } as const;
export const FencedTag = { epoch: 1 } as const;

export const ItemTag = {
  path: 1,
  type: 2,
  size: 3,
  mode: 4,
  mtimeMs: 5,
  target: 6,
  line: 7,
  text: 8,
  cut: 9,
  code: 10,
} as const;

export const DoneTag = {
  size: 1,
  bytes: 2,
  mode: 3,
  mtimeMs: 4,
  sha256: 5,
  created: 6,
  type: 7,
  target: 8,
  count: 9,
  truncated: 10,
  files: 11,
  skipped: 12,
  apparent: 13,
  entries: 14,
  unlinked: 15,
  memoryBytes: 16,
  memoryPeakBytes: 17,
  cpuMicros: 18,
  pids: 19,
  oomKills: 20,
  channels: 21,
  hidden: 22,
  directories: 23,
} as const;

/** Bytes of stdin that may be sent before the first STDIN_CREDIT. */
export const stdinWindowBytes = 262_144;
/** All PARTs of one EXEC or FILE together. */
export const maxRequestBytes = 2 * 1024 * 1024;
/** Channels init keeps open at once. */
export const maxChannels = 72;
