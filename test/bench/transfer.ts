import type { Sandbox } from "@berth/sandbox";
import type Docker from "dockerode";
import { succeeded } from "./bench-host.ts";
import { apiExec } from "./engine-exec.ts";

export const transferMegabytes = 200;
export const transferBytes = transferMegabytes * 1_000_000;

/** The file that every transfer sends. */
export async function makeBig(sandbox: Sandbox): Promise<void> {
  succeeded(await sandbox.exec({ command: `head -c ${transferBytes} /dev/zero > big` }));
}

export async function transferOurs(sandbox: Sandbox): Promise<void> {
  let bytes = 0;
  const onOutput = (chunk: { readonly bytes: Uint8Array }) => {
    bytes += chunk.bytes.length;
  };
  succeeded(await sandbox.exec({ argv: ["cat", "big"] }, { onOutput }));
  if (bytes !== transferBytes) throw new Error(`${bytes} bytes came of ${transferBytes}`);
}

export async function transferApi(container: Docker.Container): Promise<void> {
  const bytes = await apiExec(container, ["cat", "big"]);
  if (bytes < transferBytes) throw new Error(`${bytes} bytes came of ${transferBytes}`);
}
