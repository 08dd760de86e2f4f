import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { lchown, open, rename } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { forwardSocket } from "@berth/init";
import type { LinkDirectory } from "../init/link-listener.ts";

/**
 * Listens in one sandbox's link directory for the connections that its init forwards. Only that sandbox has the directory, so every
 * connection comes from it. The socket gets its name by a rename. That replaces the socket of a dead worker; and closing an old
 * listener, which unlinks the name that it was bound to, does not remove the new one.
 */
export async function openWayOut(
  { directory, owner }: LinkDirectory,
  onConnection: (socket: Socket) => void,
): Promise<() => void> {
  const folder = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    onConnection(socket);
  });
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    void folder.close().catch(() => {});
  };
  try {
    // A socket's path has at most 107 bytes, a directory's up to 4,096.
    const within = `/proc/self/fd/${folder.fd}`;
    const path = `${within}/${randomBytes(16).toString("hex")}`;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen({ path, exclusive: true }, resolve);
    });
    server.on("error", () => {});
    if (owner) await lchown(path, owner.uid, owner.gid);
    await rename(path, `${within}/${forwardSocket}`);
    return close;
  } catch (error) {
    close();
    throw error;
  }
}
