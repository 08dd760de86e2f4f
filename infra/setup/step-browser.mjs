import { existsSync } from "node:fs";
import { aptInstall, aptStanding, installAdvice, osRelease } from "./apt.mjs";
import { findProgram } from "./search-path.mjs";

/** A third smaller than the whole browser, and without GTK; the tests have no window to show. */
const PACKAGE = "chromium-headless-shell";
const PROGRAMS = [PACKAGE, "chromium", "chromium-browser", "google-chrome"];

/**
 * For the test of the board only, which is left out where there is no Chromium and none can be installed.
 * @type {import('./context.mjs').Step}
 */
export const browserStep = {
  name: "browser",
  shared: true,
  async find(context) {
    const { CHROMIUM: chosen, PATH: search } = context.environment;
    const programs = PROGRAMS.map((name) => findProgram(name, search));
    const file = chosen && existsSync(chosen) ? chosen : programs.find(Boolean);
    if (file) {
      context.browser = file;
      return { ready: true, text: file };
    }
    const { browserTrouble: trouble } = context;
    if (trouble) return { ready: true, text: `none; the test of the board is left out (${trouble})` };
    if (mayInstall()) return { ready: false, text: PACKAGE, needs: [{ at: "/usr", bytes: 450e6 }] };
    return { ready: true, text: `none; the test of the board is left out (${advice()})` };
  },
  async make(context, progress) {
    progress(`installing ${PACKAGE}`);
    // One test is not worth refusing all the others.
    await aptInstall(context, "browser", [PACKAGE]).catch((error) => {
      context.browserTrouble = `installing ${PACKAGE} failed: ${error.message.split("\n")[0]}`;
    });
  },
};

/** Ubuntu's package only fetches a snap, which needs a snapd that runs. */
function mayInstall() {
  return aptStanding() === "root" && osRelease().ID === "debian";
}

function advice() {
  if (osRelease().ID === "debian") return installAdvice([PACKAGE])[0];
  return "install Chromium or Chrome, or set CHROMIUM to its program";
}
