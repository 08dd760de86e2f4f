import { accessSync, constants } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const places = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** A Chromium of this machine, if it has one; CHROMIUM is what set-up found. */
export const browserPath = [process.env.CHROMIUM ?? "", ...places].find((path) => {
  try {
    accessSync(path, constants.X_OK);
    return path !== "";
  } catch {
    return false;
  }
});

/** A note for the titles of tests that are skipped without a browser. */
export const browserNote =
  browserPath === undefined
    ? ", skipped: there is no Chromium (Debian's chromium-headless-shell, or CHROMIUM=/path)"
    : "";

export async function withBrowser(use: (browser: Browser) => Promise<void>): Promise<void> {
  const browser = await chromium.launch({
    executablePath: browserPath ?? "",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  try {
    await use(browser);
  } finally {
    await browser.close();
  }
}
