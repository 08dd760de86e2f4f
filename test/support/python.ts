import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { CuttingProxy } from "./cutting-proxy.ts";
import { type ProgramEnd, root, runProgram } from "./doc-blocks.ts";

export const pythonClient = join(root, "packages/client-python");

/** Runs Python with nothing of the caller's environment, and leaves no compiled files beside the sources. */
export function python(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ProgramEnd> {
  return runProgram("python3", args, { PYTHONDONTWRITEBYTECODE: "1", ...env });
}

/** Why no Python program can be run here; undefined where one can. */
export async function whyNoPython(): Promise<string | undefined> {
  const program = "import sys; sys.exit(sys.version_info < (3, 10))";
  const { code } = await python(["-c", program]).catch(() => ({ code: "missing" }));
  if (code === 0) return undefined;
  return code === 1 ? "the Python here is older than 3.10" : "there is no python3 here";
}

/** Packs the client and installs it, as its users do; without pip, by the script that packs it. */
export async function installClient(directory: string): Promise<{ wheel: string; site: string }> {
  const wheel = (await succeeded(join(pythonClient, "pack.py"), join(directory, "dist"))).trim();
  const site = join(directory, "site");
  const { code } = await python(["-m", "pip", "--version"]);
  if (code === 0) {
    const options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-compile"];
    await succeeded("-m", "pip", "install", ...options, "--target", site, wheel);
  } else await succeeded(join(pythonClient, "pack.py"), "--install", wheel, site);
  return { wheel, site };
}

async function succeeded(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await python(args);
  if (code !== 0) throw new Error(`python3 ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

/** A way to a gateway that a program of another language can cut, over HTTP. */
export class ControlledWay {
  readonly proxy: CuttingProxy;
  readonly #verbs: Readonly<Record<string, () => unknown>>;
  readonly #server = createServer(async (request, response) => {
    await this.#verbs[request.url?.slice(1) ?? ""]?.();
    const { cuts, opened } = this.proxy;
    response.end(JSON.stringify({ cuts, opened }));
  });

  constructor(gatewayUrl: string) {
    const proxy = new CuttingProxy(Number(new URL(gatewayUrl).port));
    this.proxy = proxy;
    this.#verbs = {
      cut: () => proxy.cut(),
      silence: () => proxy.silence(),
      "lose-next": () => proxy.loseNext++,
      stop: () => proxy.stop(),
      start: () => proxy.start(),
    };
  }

  async start(): Promise<Readonly<Record<"BERTH_CUT_URL" | "BERTH_CONTROL_URL", string>>> {
    await this.proxy.start();
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo;
    return { BERTH_CUT_URL: this.proxy.url, BERTH_CONTROL_URL: `http://127.0.0.1:${port}` };
  }

  async stop(): Promise<void> {
    await this.proxy.stop();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
