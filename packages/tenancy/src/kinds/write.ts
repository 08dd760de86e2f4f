import type { JobValue } from "@berth/protocol";
import type { RequestOf, RunContext } from "./run-context.ts";

export async function runWrite(
  request: RequestOf<"write">,
  { sandbox, signal }: RunContext,
): Promise<JobValue> {
  const { path, mode, append, mustNotExist, ifMatch } = request;
  const { size, created, sha256 } = await sandbox.files.write(path, contentBytes(request), {
    append,
    mustNotExist,
    signal,
    ...(mode === undefined ? {} : { mode }),
    ...(ifMatch === undefined ? {} : { ifMatch }),
  });
  return { size, created, sha256 };
}

export function contentBytes({
  content,
  encoding,
}: {
  readonly content: string;
  readonly encoding: "utf8" | "base64";
}): Buffer {
  return Buffer.from(content, encoding);
}
