import { aptInstall, aptStanding, installAdvice } from "./apt.mjs";
import { outputOf } from "./run-command.mjs";
import { findProgram } from "./search-path.mjs";

const PACKAGE = "docker-compose";

/**
 * For the test of docker-compose.yml only, which is left out where there is no compose and none can be installed.
 * @type {import('./context.mjs').Step}
 */
export const composeStep = {
  name: "compose",
  shared: true,
  async find(context) {
    const version = await composeVersion(context.environment.PATH);
    if (version) return { ready: true, text: version };
    if (aptStanding() === "root")
      return { ready: false, text: PACKAGE, needs: [{ at: "/usr", bytes: 20e6 }] };
    return { ready: true, text: `none; its test is left out (${installAdvice([PACKAGE])[0]})` };
  },
  async make(context, progress) {
    progress(`installing ${PACKAGE}`);
    await aptInstall(context, "compose", [PACKAGE]);
  },
};

/** Compose v2 is a plugin of the docker command; 1.29 is a program of its own. */
async function composeVersion(searchPath) {
  for (const [name, ...words] of [["docker", "compose"], ["docker-compose"]]) {
    const program = findProgram(name ?? "", searchPath);
    const version = program && (await outputOf(program, [...words, "version", "--short"]));
    if (version) return `${[name, ...words].join(" ")} ${version.trim()}`;
  }
  return undefined;
}
