import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { packTar } from "@berth/tar";

const makeWheel = `
import base64, io, zipfile
data = io.BytesIO()
info = "berth_demo-1.0.dist-info"
files = {
    "berth_demo.py": "def answer():\\n    return 42\\n",
    f"{info}/METADATA": "Metadata-Version: 2.1\\nName: berth-demo\\nVersion: 1.0\\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
files[f"{info}/RECORD"] = "".join(f"{name},,\\n" for name in [*files, f"{info}/RECORD"])
with zipfile.ZipFile(data, "w") as out:
    for name, text in files.items():
        out.writestr(name, text)
print(base64.b64encode(data.getvalue()).decode())
`;

/** A package index for pip and a registry for npm on this machine's loopback, each with one package. */
export async function openMirror() {
  const { stdout } = await promisify(execFile)("python3", ["-c", makeWheel]);
  const wheel = Buffer.from(stdout, "base64");
  const manifest = { name: "berth-demo", version: "1.0.0", main: "index.js" };
  const file = (path: string, text: string) => ({
    ...{ path, type: "file" as const, mode: 0o644, modifiedMs: 0, bytes: Buffer.from(text) },
  });
  const tarball = gzipSync(
    await packTar([
      file("package/package.json", JSON.stringify(manifest)),
      file("package/index.js", "module.exports = () => 42;\n"),
    ]),
  );
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const url = request.url ?? "";
    seen.push(url);
    const pages: Readonly<Record<string, string | Buffer>> = {
      "/simple/berth-demo/": `<a href="/berth_demo-1.0-py3-none-any.whl">berth_demo-1.0-py3-none-any.whl</a>`,
      "/berth_demo-1.0-py3-none-any.whl": wheel,
      "/npm/berth-demo": JSON.stringify({
        ...{ name: "berth-demo", "dist-tags": { latest: "1.0.0" } },
        versions: {
          "1.0.0": {
            ...manifest,
            dist: {
              tarball: `${base}/npm/berth-demo-1.0.0.tgz`,
              integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
            },
          },
        },
      }),
      "/npm/berth-demo-1.0.0.tgz": tarball,
      "/data.csv": "a,b\n1,2\n",
    };
    if (url === "/moved") return void response.writeHead(302, { location: "/data.csv" }).end();
    if (url === "/away") return void response.writeHead(302, { location: "http://127.0.0.1:9/" }).end();
    const page = pages[url];
    const type = url.endsWith(".csv")
      ? "text/csv"
      : url.startsWith("/simple")
        ? "text/html"
        : "application/json";
    response.writeHead(page === undefined ? 404 : 200, { "content-type": type }).end(page ?? "nothing here");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.close();
    server.closeAllConnections();
  };
  return { port, seen, wheel, tarball, [Symbol.asyncDispose]: close };
}
