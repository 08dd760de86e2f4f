/** A web site in a process of its own, so that it takes no time of the worker's thread. Prints its port. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const chunk = Buffer.alloc(1_000_000, "berth ");

const server = createServer((request, response) => {
  let left = Number(request.url?.slice(1) ?? 0);
  response.writeHead(200, { "content-length": left });
  const more = () => {
    while (left > 0) {
      const bytes = left < chunk.length ? chunk.subarray(0, left) : chunk;
      left -= bytes.length;
      if (!response.write(bytes)) return;
    }
    response.end();
  };
  response.on("drain", more);
  more();
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
// The benchmark's process has ended.
process.stdin.resume().once("end", () => process.exit());
