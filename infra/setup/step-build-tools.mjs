import { aptInstall, aptStanding, installAdvice } from "./apt.mjs";
import { SetupProblem } from "./problem.mjs";
import { outputOf } from "./run-command.mjs";
import { findProgram } from "./search-path.mjs";

const PACKAGES = ["gcc", "make", "libc6-dev", "musl-tools"];

/**
 * init is built against musl where it can be (a tenth of the size of glibc's static binary); glibc will do.
 * @type {import('./context.mjs').Step}
 */
export const buildToolsStep = {
  name: "build tools",
  shared: true,
  async find(context) {
    const search = context.environment.PATH;
    const compiler = findProgram("cc", search);
    const make = findProgram("make", search);
    const musl = findProgram("musl-gcc", search);
    if (compiler && make && (musl || aptStanding() !== "root")) {
      const version = (await outputOf(compiler, ["-dumpfullversion"]))?.trim() || "of unknown version";
      return {
        ready: true,
        text: `cc ${version}, make${musl ? ", musl" : " (no musl: init is linked against glibc)"}`,
      };
    }
    const missing = [compiler ? "" : "cc", make ? "" : "make", musl ? "" : "musl-gcc"].filter(Boolean);
    return {
      ready: false,
      text: missing.join(", "),
      needs: [{ at: "/usr", bytes: compiler ? 10e6 : 250e6 }],
    };
  },
  async make(context, progress) {
    if (aptStanding() !== "root") {
      throw new SetupProblem("A C compiler or make is missing; init is built from source.", {
        fix: installAdvice(PACKAGES),
      });
    }
    progress(`installing ${PACKAGES.join(" ")}`);
    await aptInstall(context, "build-tools", PACKAGES);
  },
};
