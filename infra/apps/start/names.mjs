import { createHash } from "node:crypto";

const LONGEST = 63;

/**
 * Made to fit the fleet's rule for names: a-z, 0-9, - and _, beginning and ending with a letter or digit, at most 63.
 * What is too long keeps its beginning and gets a hash of the whole.
 * @param {string} text
 */
export function asName(text) {
  const name = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, "-")
    .replaceAll(/^[-_]+|[-_]+$/g, "");
  if (name.length <= LONGEST) return name || "berth";
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8);
  return `${name.slice(0, LONGEST - 9)}-${hash}`;
}

/**
 * A worker's id under compose. Project, service and number stay when compose replaces the container. The host
 * distinguishes containers that have the same number on two hosts. Undefined for a container that compose did not make.
 * @param {Record<string, string>} labels of the container
 * @param {string} host
 */
export function workerIdFrom(labels, host) {
  const parts = ["project", "service", "container-number"].map(
    (name) => labels[`com.docker.compose.${name}`],
  );
  return parts.every(Boolean) ? asName([...parts, host].join("-")) : undefined;
}
