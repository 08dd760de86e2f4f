/**
 * What the steps of one set-up share.
 *
 * @typedef {object} Context
 * @property {ReturnType<typeof import('./places.mjs').placesIn>} places
 * @property {NodeJS.ProcessEnv} environment as set-up was started; never changed
 * @property {{ file: string, version: string }} [node] the Node that runs Berth
 * @property {string} [pnpm] the pnpm program
 * @property {import('./engine-api.mjs').Engine} [engine]
 * @property {string} [browser] the Chromium that tests use
 * @property {string} [browserTrouble] why it could not be installed
 *
 * @typedef {{ ready: true, text: string }} Ready
 * @typedef {{ ready: false, text: string, needs?: import('./disk-space.mjs').Need[] }} Missing
 *
 * @typedef {object} Step
 * @property {string} name
 * @property {boolean} [shared] changes the machine, not only this clone: made under the machine-wide lock
 * @property {(context: Context) => Promise<Ready | Missing>} find looks and changes nothing
 * @property {(context: Context, progress: (text: string) => void) => Promise<void>} make
 *   throws a SetupProblem when it cannot; `find` is asked again afterwards
 */
import { PNPM_VERSION, placesIn } from "./places.mjs";
import { withPathFirst } from "./search-path.mjs";

/**
 * @param {string} root
 * @returns {Context}
 */
export function newContext(root, environment = process.env) {
  return { places: placesIn(root), environment };
}

/**
 * The environment Berth's own programs run in.
 * @param {Context} context
 */
export function berthEnvironment(context) {
  const { places, environment, node, engine, browser } = context;
  const folders = [
    `${places.root}/node_modules/.bin`,
    `${places.tools}/pnpm-${PNPM_VERSION}/node_modules/.bin`,
  ];
  if (node) folders.unshift(node.file.slice(0, node.file.lastIndexOf("/")));
  const result = withPathFirst(folders, environment);
  Object.assign(result, {
    BERTH_IMAGE: environment.BERTH_IMAGE ?? "berth-sandbox:bookworm",
    TURBO_TELEMETRY_DISABLED: "1",
    DO_NOT_TRACK: "1",
  });
  if (browser) result.CHROMIUM = browser;
  if (engine && engine.address !== "unix:///var/run/docker.sock") result.DOCKER_HOST = engine.address;
  return result;
}
