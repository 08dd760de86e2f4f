import { randomBytes } from "node:crypto";
import path from "node:path";
import { asName } from "./names.mjs";
import { writtenOnce } from "./once.mjs";

/**
 * Which disk the workspaces are on. The name is kept beside them, so it is right by itself: the same for all workers that
 * see this folder (the containers of one host, or hosts with shared storage), another one on any other disk, and it moves with
 * the folder.
 * @param {string} workspaces
 * @param {string} machine what people call the machine; only its first use counts
 */
export function hostId(workspaces, machine) {
  const make = () => `${asName(machine).slice(0, 24)}-${randomBytes(3).toString("hex")}\n`;
  return writtenOnce(path.join(workspaces, ".host"), make, 0o644).trim();
}
