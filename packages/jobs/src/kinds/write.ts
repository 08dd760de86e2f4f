import type { ValueOf } from "@berth/protocol";
import type { ArtifactsPort } from "../artifacts/artifacts-port.ts";
import { RefusedArtifacts } from "../artifacts/refused-artifacts.ts";
import { workspaceName } from "../files/workspace-name.ts";
import { Refusal, type RequestOf, type RunContext } from "../run-context.ts";

export async function runWrite(request: RequestOf<"write">, context: RunContext): Promise<ValueOf<"write">> {
  const { sandbox, signal, artifacts } = context;
  const { path, mode, append, mustNotExist, ifMatch, persist } = request;
  if (persist && !artifacts)
    throw new Refusal("not-kept", "this worker keeps no artifacts; write without persist");
  const bytes = contentBytes(request);
  const { size, created, sha256 } = await sandbox.files.write(path, bytes, {
    append,
    mustNotExist,
    signal,
    ...(mode === undefined ? {} : { mode }),
    ...(ifMatch === undefined ? {} : { ifMatch }),
  });
  const persisted = persist && artifacts ? await persistedValue(path, bytes, artifacts, context) : {};
  return { size, created, sha256, ...persisted };
}

/** The file is already in the workspace: an artifact over the quota is only reported as refused. */
async function persistedValue(
  path: string,
  bytes: Buffer,
  artifacts: ArtifactsPort,
  { onArtifact }: RunContext,
): Promise<Pick<ValueOf<"write">, "artifacts" | "artifactsRefused" | "artifactsRefusedCount">> {
  const answer = await artifacts.persist(workspaceName(path), bytes);
  if ("kept" in answer) {
    await onArtifact?.(answer.kept);
    return { artifacts: [answer.kept] };
  }
  const refused = new RefusedArtifacts();
  refused.add(answer.refused.path, answer.refused.code, answer.refused.reason);
  return refused.value();
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
