export { initBinaryPath } from "./binary.ts";
export type { Frame } from "./frame.ts";
export { encodeFrame, FrameType, headerBytes, maxFrameBytes, maxPayloadBytes, trailerBytes } from "./frame.ts";
export { FrameDecoder, FrameError } from "./frame-decoder.ts";
export type { WireRecord } from "./record.ts";
export { RecordWriter, Records, readItems } from "./record.ts";
export {
  CreditTag,
  DoneTag,
  ExecFlag,
  ExecTag,
  ExitKind,
  ExitReason,
  ExitTag,
  FailTag,
  FencedTag,
  FileOp,
  FileTag,
  GlobFlag,
  GrepFlag,
  HelloAckTag,
  HelloTag,
  initialStdinCredit,
  ItemTag,
  KillTag,
  ListFlag,
  MkdirFlag,
  MoveFlag,
  maxRequestBytes,
  ReadFlag,
  RemoveFlag,
  StartedTag,
  StatFlag,
  WriteFlag,
} from "./tags.ts";
