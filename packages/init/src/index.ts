export { initBinaryPath } from "./binary.ts";
export type { FileToWrite } from "./encode-files.ts";
export { encodeFiles } from "./encode-files.ts";
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
export type { PackedEntry } from "./packed-entries.ts";
export { readPackedEntries } from "./packed-entries.ts";
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
  ForwardedTag,
  ForwardTag,
  forwardSocket,
  GlobFlag,
  GrepFlag,
  HelloAckTag,
  HelloTag,
  ItemTag,
  KillTag,
  LinkedTag,
  LinkTag,
  ListFlag,
  MkdirFlag,
  MoveFlag,
  maxChannels,
  maxRequestBytes,
  PackFlag,
  PingTag,
  ReadFlag,
  RemoveFlag,
  StartedTag,
  StatFlag,
  stdinWindowBytes,
  UnpackFlag,
  WriteFlag,
} from "./tags.ts";
