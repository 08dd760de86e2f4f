/**
 * `npm run berth -- …`: the command with the Node that set-up found, and without a set-up of its own, which would add a
 * second to each call. As `npm run build` made it, for as long as that is no older than the sources; else from source,
 * which takes longer to load.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { builtCommand } from "./built-command.mjs";
import { berthEnvironment, newContext } from "./context.mjs";
import { launch } from "./launch.mjs";
import { watchNpm } from "./parent.mjs";
import { repoRoot } from "./places.mjs";
import { nodeStep } from "./step-node.mjs";

const context = newContext(repoRoot, {
  // npm runs scripts in the repository; paths on the command line are meant from where the person is.
  INIT_CWD: process.cwd(),
  ...process.env,
  npm_lifecycle_event: "berth",
});
const node = await nodeStep.find(context);
const built = builtCommand(repoRoot);
if (!node.ready || !existsSync(path.join(repoRoot, "node_modules"))) {
  process.stderr.write("berth: this machine is not set up yet\n  npm run setup\n");
  process.exitCode = 78;
} else if (built && context.node?.file === process.execPath) {
  Object.assign(process.env, berthEnvironment(context));
  watchNpm(() => process.kill(process.pid, "SIGTERM"));
  await import(pathToFileURL(built).href);
} else {
  const program = built ? path.relative(repoRoot, built) : "apps/cli/src/main.ts";
  process.exitCode = await launch(context, program, process.argv.slice(2));
}
