import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { berthEnvironment } from "./context.mjs";
import { SetupProblem } from "./problem.mjs";
import { runLogged } from "./run-command.mjs";

const SKIPPED_FOLDERS = new Set(["node_modules", "dist", "coverage"]);
const DEPTH = 3;

/**
 * `pnpm install` takes seconds even when there is nothing to do, so what it was last run for is kept as a stamp.
 * @type {import('./context.mjs').Step}
 */
export const dependenciesStep = {
  name: "dependencies",
  async find(context) {
    const { root } = context.places;
    const manifests = manifestsIn(root);
    const complete = manifests.every(
      (file) => !wantsModules(file) || existsSync(path.join(path.dirname(file), "node_modules")),
    );
    if (complete && readStamp(context) === fingerprintOf(root, manifests)) {
      return { ready: true, text: `up to date with pnpm-lock.yaml (${manifests.length} packages of ours)` };
    }
    return {
      ready: false,
      text: "dependencies as pnpm-lock.yaml names them",
      needs: [{ at: path.join(root, "node_modules"), bytes: 500e6 }],
    };
  },
  async make(context, progress) {
    const { root, logs, stamps } = context.places;
    if (!existsSync(path.join(root, "pnpm-lock.yaml"))) {
      throw new SetupProblem(
        "pnpm-lock.yaml is missing, so set-up does not know which versions to install.",
        {
          fix: ["git checkout -- pnpm-lock.yaml"],
        },
      );
    }
    progress("pnpm install --frozen-lockfile");
    const fingerprint = fingerprintOf(root, manifestsIn(root));
    await runLogged(context.pnpm ?? "pnpm", ["install", "--frozen-lockfile", "--reporter=append-only"], {
      log: path.join(logs, "dependencies.log"),
      root,
      // CI=true: pnpm must never stop to ask whether it may replace a node_modules folder.
      env: { ...berthEnvironment(context), CI: "true" },
    });
    mkdirSync(stamps, { recursive: true });
    writeFileSync(path.join(stamps, "dependencies"), fingerprint);
  },
};

/** Every package.json of ours, sorted. Read from the folders, so that a package added to the workspace is noticed. */
export function manifestsIn(root) {
  const found = [];
  const visit = (folder, depth) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isFile() && entry.name === "package.json") found.push(path.join(folder, entry.name));
      if (
        entry.isDirectory() &&
        depth < DEPTH &&
        !SKIPPED_FOLDERS.has(entry.name) &&
        !entry.name.startsWith(".")
      ) {
        visit(path.join(folder, entry.name), depth + 1);
      }
    }
  };
  visit(root, 0);
  return found.sort();
}

/**
 * @param {string} root
 * @param {string[]} manifests
 */
export function fingerprintOf(root, manifests) {
  const hash = createHash("sha256");
  const settings = ["pnpm-lock.yaml", "pnpm-workspace.yaml", ".npmrc"].map((name) => path.join(root, name));
  for (const file of [...settings, ...manifests]) {
    const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
    hash.update(`${path.relative(root, file)}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}

function wantsModules(manifest) {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(manifest, "utf8"));
  return Object.keys({ ...dependencies, ...devDependencies }).length > 0;
}

function readStamp(context) {
  try {
    return readFileSync(path.join(context.places.stamps, "dependencies"), "utf8");
  } catch {
    return undefined;
  }
}
