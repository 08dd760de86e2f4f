import { aptInstall, aptStanding } from "./apt.mjs";
import { findProgram } from "./search-path.mjs";

/** What some tests need and Berth does not: the program, and Debian's package with it. */
const TOOLS = { "mkfs.btrfs": "btrfs-progs", "mkfs.xfs": "xfsprogs", "docker-registry": "docker-registry" };

/**
 * File systems to mount from a file, and a registry on loopback. Where they cannot be installed, their tests are skipped with the reason.
 * @type {import('./context.mjs').Step}
 */
export const testToolsStep = {
  name: "test tools",
  shared: true,
  async find(context) {
    const missing = missingFrom(context);
    if (missing.length === 0) return { ready: true, text: Object.keys(TOOLS).join(", ") };
    const text = `without ${missing.join(", ")}`;
    if (aptStanding() !== "root") return { ready: true, text: `${text}: their tests are skipped` };
    return { ready: false, text, needs: [{ at: "/usr", bytes: 60e6 }] };
  },
  async make(context, progress) {
    const packages = missingFrom(context).map((program) => TOOLS[program]);
    progress(`installing ${packages.join(" ")}`);
    await aptInstall(context, "test-tools", packages);
  },
};

function missingFrom(context) {
  const search = `${context.environment.PATH}:/usr/sbin:/sbin`;
  return Object.keys(TOOLS).filter((program) => !findProgram(program, search));
}
