export { initBinaryPath } from "./binary.ts";
export type { Frame } from "./frame.ts";
export {
  encodeFrame,
  FrameType,
  headerBytes,
  maxFrameBytes,
  maxPayloadBytes,
  trailerBytes,
} from "./frame.ts";
export { FrameDecoder, FrameError } from "./frame-decoder.ts";
export type { WireRecord } from "./record.ts";
export { Records, RecordWriter, readItems } from "./record.ts";
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
  ItemTag,
  initialStdinCredit,
  KillTag,
  LinkedTag,
  LinkTag,
  ListFlag,
  MkdirFlag,
  MoveFlag,
  maxChannels,
  maxRequestBytes,
  PingTag,
  ReadFlag,
  RemoveFlag,
  StartedTag,
  StatFlag,
  WriteFlag,
} from "./tags.ts";
