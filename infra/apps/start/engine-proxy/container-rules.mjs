import path from "node:path";
import { DEFAULT_RUNTIME, withTag } from "./settings.mjs";

/**
 * What a container may be. The worker's own description of one (packages/sandbox/src/docker/container-spec.ts) passes; what
 * asks for more than a sandbox is refused field by field. A field that is not known here is refused too: the engine reads names
 * in any case (`hostconfig`), and gains new ones.
 *
 * @typedef {object} Rules
 * @property {string} fleet
 * @property {string} workspaces the folder of the workspaces on the host
 * @property {string[]} networks modes that a sandbox may have
 * @property {string[]} images that a sandbox may be made of
 * @property {string[]} runtimes that it may have; `default` is the engine's own
 * @property {string[]} users `uid:gid` that it may have besides the uids of sandboxes' own
 * @property {boolean} rootless container root is the engine's own user, so it may be root inside
 */

const FLEET_LABEL = "berth.fleet";
const KEY = /^[a-z0-9][a-z0-9._-]*$/;
/** Where the uids that workers give to sandboxes begin (packages/sandbox/src/docker/workspace.ts). Nothing of the host is theirs. */
const FIRST_UID = 2_000_000;

const anything = () => true;
const is = (wanted) => (value) => JSON.stringify(value) === JSON.stringify(wanted);
const positive = (value) => Number.isFinite(value) && value > 0;

/** @type {Record<string, (value: any, rules: Rules, container: any) => boolean>} */
const CONTAINER = {
  Image: (value, { images }) => typeof value === "string" && images.includes(withTag(value)),
  Hostname: anything,
  User: (value, rules) => userFits(value, rules),
  WorkingDir: anything,
  Entrypoint: anything,
  Cmd: anything,
  Healthcheck: is({ Test: ["NONE"] }),
  StopSignal: anything,
  Tty: is(false),
  OpenStdin: anything,
  StdinOnce: anything,
  NetworkDisabled: anything,
  Labels: (value, { fleet }) => value?.[FLEET_LABEL] === fleet,
  HostConfig: (value) => value !== null && typeof value === "object",
};

/** @type {Record<string, (value: any, rules: Rules, container: any) => boolean>} */
const HOST_CONFIG = {
  NetworkMode: (value, { networks }) => networks.includes(value),
  Runtime: (value, { runtimes }) => value !== DEFAULT_RUNTIME && runtimes.includes(value),
  CapDrop: is(["ALL"]),
  SecurityOpt: is(["no-new-privileges"]),
  Privileged: is(false),
  ReadonlyRootfs: is(true),
  Tmpfs: anything,
  ShmSize: positive,
  Memory: positive,
  MemorySwap: (value, _rules, container) => value === container.HostConfig.Memory,
  NanoCpus: positive,
  PidsLimit: positive,
  Ulimits: anything,
  IpcMode: is("private"),
  CgroupnsMode: is("private"),
  LogConfig: is({ Type: "none", Config: {} }),
  RestartPolicy: is({ Name: "no" }),
  AutoRemove: is(false),
  Mounts: (value, rules) => Array.isArray(value) && value.every((mount) => mountFits(mount, rules)),
};

/** Without these a container has more than a sandbox has. */
const NEEDED = ["Image", "User", "Labels", "HostConfig"];
const NEEDED_HOST_CONFIG = Object.keys(HOST_CONFIG).filter(
  (name) => !["Runtime", "AutoRemove"].includes(name),
);

/**
 * Why it may not be made; empty when it may.
 * @param {any} container as the engine's API takes it
 * @param {Rules} rules
 * @returns {string[]}
 */
export function complaints(container, rules) {
  if (container === null || typeof container !== "object" || Array.isArray(container))
    return ["not a container"];
  const found = fieldComplaints(container, CONTAINER, NEEDED, rules, container, "");
  const { HostConfig: host } = container;
  if (host === null || typeof host !== "object") return found;
  if (host.Runtime === undefined && !rules.runtimes.includes(DEFAULT_RUNTIME))
    found.push("HostConfig.Runtime is missing");
  return [
    ...found,
    ...fieldComplaints(host, HOST_CONFIG, NEEDED_HOST_CONFIG, rules, container, "HostConfig."),
  ];
}

function fieldComplaints(value, fields, needed, rules, container, prefix) {
  const missing = needed
    .filter((name) => !Object.hasOwn(value, name))
    .map((name) => `${prefix}${name} is missing`);
  const wrong = Object.entries(value).flatMap(([name, field]) => {
    const fits = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!fits) return [`${prefix}${name} is not for sandboxes`];
    return fits(field, rules, container)
      ? []
      : [`${prefix}${name} is not a sandbox's: ${JSON.stringify(field)}`];
  });
  return [...missing, ...wrong];
}

/** A uid of the sandbox's own, with the group of the same number: a group of the host's would open the host's files. */
function userFits(value, { rootless, users }) {
  if (rootless || users.includes(value)) return true;
  const [, uid, gid] = /^([1-9]\d*):([1-9]\d*)$/.exec(value) ?? [];
  return uid !== undefined && uid === gid && Number(uid) >= FIRST_UID && Number(uid) < 2 ** 31;
}

/** Read-only files beside the workspaces: where they are mounted, their folder there, and their names in it. */
const FILES = {
  "/.berth/init": { folder: ".init", name: /^[0-9a-f]+$/ },
  "/etc/passwd": { folder: ".etc", name: /^passwd\.[0-9a-f]+$/ },
  "/etc/group": { folder: ".etc", name: /^group\.[0-9a-f]+$/ },
  "/etc/hosts": { folder: ".etc", name: /^hosts\.[0-9a-f]+$/ },
};

/** A workspace onto /workspace, or one of the files above. Nothing else of the host. */
function mountFits(mount, { workspaces }) {
  const { Type: type, Source: source, Target: target, ReadOnly: readOnly, ...more } = mount ?? {};
  if (type !== "bind" || typeof source !== "string" || Object.keys(more).length > 0) return false;
  const name = path.basename(source);
  if (target === "/workspace") return source === path.join(workspaces, name) && KEY.test(name);
  const file = Object.hasOwn(FILES, target) ? FILES[target] : undefined;
  return (
    file !== undefined &&
    readOnly === true &&
    source === path.join(workspaces, file.folder, name) &&
    file.name.test(name)
  );
}
