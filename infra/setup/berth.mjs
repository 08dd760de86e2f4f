/**
 * `npm run berth -- …`: the command from source, with the Node that set-up found and without a set-up of its own, which
 * would add a second to each call.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { newContext } from "./context.mjs";
import { launch } from "./launch.mjs";
import { repoRoot } from "./places.mjs";
import { nodeStep } from "./step-node.mjs";

const context = newContext(repoRoot, {
  // npm runs scripts in the repository; paths on the command line are meant from where the person is.
  INIT_CWD: process.cwd(),
  ...process.env,
  npm_lifecycle_event: "berth",
});
const node = await nodeStep.find(context);
if (!node.ready || !existsSync(path.join(repoRoot, "node_modules"))) {
  process.stderr.write("berth: this machine is not set up yet\n  npm run setup\n");
  process.exitCode = 78;
} else {
  process.exitCode = await launch(context, "apps/cli/src/main.ts", process.argv.slice(2));
}
