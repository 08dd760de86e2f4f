import type { ValueOf } from "@berth/protocol";
import { workspaceName } from "../files/workspace-name.ts";
import { Refusal, type RequestOf, type RunContext } from "../run-context.ts";

type InRequest = Extract<RequestOf<"archive">, { direction: "in" }>;

/** The sandbox unpacks it with its own memory and time limits: an archive can be made expensive to read. */
export async function runArchiveIn(
  request: InRequest,
  { sandbox, signal }: RunContext,
): Promise<ValueOf<"archive">> {
  const archive = Buffer.from(request.content, "base64");
  const { count, bytes, entries, refused } = await sandbox.files.unpack(archive, {
    path: workspaceName(request.path),
    signal,
  });
  const [first] = refused;
  if (!first) return { count, size: bytes };
  throw new Refusal(
    first.refusal.code,
    `${first.refusal.message}; ${count} of the archive's ${entries} entries had been unpacked before`,
    { count },
  );
}
