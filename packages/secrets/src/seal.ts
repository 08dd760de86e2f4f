import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Fault } from "@berth/protocol";
import type { Keyring } from "./keyring.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;
const form = /^s1\.([0-9a-f]{16})\.([A-Za-z0-9_-]+)$/;

/** What a sealed value is bound to: it cannot be opened as another tenant's, under another name, or as a job's own. */
export interface Binding {
  readonly use: "store" | "job";
  readonly tenant: string;
  readonly name: string;
}

/** AES-256-GCM with the keyring's first key, a random nonce, and the binding as additional data. */
export function seal(keyring: Keyring, binding: Binding, value: string): string {
  const { id, bytes } = keyring.first;
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, bytes, nonce, { authTagLength: tagBytes });
  cipher.setAAD(boundTo(binding));
  const sealed = Buffer.concat([cipher.update(value, "utf8"), cipher.final()]);
  return `s1.${id}.${Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url")}`;
}

/** Throws `secret-unreadable` when no key opens it, or it was sealed for something else. */
export function open(keyring: Keyring, binding: Binding, sealed: string): string {
  const { tenant, name } = binding;
  const [, id = "", body = ""] = form.exec(sealed) ?? [];
  const key = keyring.get(id);
  if (key === undefined)
    throw new Fault("secret-unreadable", {
      tenant,
      name,
      detail: `no key ${id || "of its kind"} is configured`,
    });
  const bytes = Buffer.from(body, "base64url");
  if (bytes.length < nonceBytes + tagBytes)
    throw new Fault("secret-unreadable", { tenant, name, detail: "it is cut off" });
  const decipher = createDecipheriv(algorithm, key.bytes, bytes.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(boundTo(binding));
  decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
  try {
    const value = Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]);
    return value.toString("utf8");
  } catch {
    throw new Fault("secret-unreadable", {
      tenant,
      name,
      detail: "it was changed, or sealed for something else",
    });
  }
}

/** The id of the key that sealed it. */
export function keyIdOf(sealed: string): string | undefined {
  return form.exec(sealed)?.[1];
}

function boundTo({ use, tenant, name }: Binding): Buffer {
  return Buffer.from(`berth\0${use}\0${tenant}\0${name}`);
}
