import { spawn } from "node:child_process";
import { once } from "node:events";
import Docker from "dockerode";

export const testsuiteImage = "berth-testsuite:bookworm";

const dockerfile = `FROM berth-sandbox:bookworm
RUN apt-get update && apt-get install -y --no-install-recommends libpython3.11-testsuite
`;

/** The sandbox image with CPython's tests, from their Debian package. */
export async function ensureTestsuiteImage(): Promise<void> {
  const there = await new Docker()
    .getImage(testsuiteImage)
    .inspect()
    .catch(() => undefined);
  if (there) return;
  console.log(`building ${testsuiteImage} from berth-sandbox:bookworm …`);
  const child = spawn("docker", ["build", "--network", "host", "-t", testsuiteImage, "-"], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  child.stdin.end(dockerfile);
  const [code] = await once(child, "close");
  if (code !== 0)
    throw new Error(`docker build ended with ${code}: does npm run setup say that all is there?`);
}
