import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { packTar } from "@berth/tar";

/** A registry with one image in it, on this machine: enough of the distribution protocol for an engine to pull from. */
export async function startRegistry(
  files: readonly { readonly path: string; readonly bytes: Buffer }[],
): Promise<{ image: string; stop: () => Promise<void> }> {
  const common = { type: "file", mode: 0o644, modifiedMs: 0 } as const;
  const layer = await packTar(files.map((file) => ({ ...common, ...file })));
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === "arm64" ? "arm64" : "amd64",
      os: "linux",
      config: {},
      rootfs: { type: "layers", diff_ids: [digestOf(layer)] },
    }),
  );
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: {
        mediaType: "application/vnd.docker.container.image.v1+json",
        size: config.length,
        digest: digestOf(config),
      },
      layers: [
        {
          mediaType: "application/vnd.docker.image.rootfs.diff.tar",
          size: layer.length,
          digest: digestOf(layer),
        },
      ],
    }),
  );
  const blobs = new Map([config, layer].map((blob) => [digestOf(blob), blob]));
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    const blob = blobs.get(path.split("/blobs/")[1] ?? "");
    if (path === "/v2/") response.end("{}");
    else if (path.includes("/manifests/")) {
      response.setHeader("content-type", manifestType);
      response.setHeader("docker-content-digest", digestOf(manifest));
      response.setHeader("content-length", manifest.length);
      response.end(request.method === "HEAD" ? undefined : manifest);
    } else if (blob) {
      response.setHeader("content-length", blob.length);
      response.end(blob);
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    image: `127.0.0.1:${port}/berth-pull:test`,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

const manifestType = "application/vnd.docker.distribution.manifest.v2+json";

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
