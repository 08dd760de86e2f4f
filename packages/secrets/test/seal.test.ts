import { randomBytes } from "node:crypto";
import { isFault } from "@berth/protocol";
import { expect, test } from "vitest";
import { type Binding, Keyring, keyIdOf, open, seal } from "../src/index.ts";

const [oldKey, newKey] = [randomBytes(32).toString("base64"), randomBytes(32).toString("hex")];
const binding: Binding = { use: "store", tenant: "acme", name: "OPENAI_KEY" };

function keyring(text: string): Keyring {
  const parsed = Keyring.parse(text);
  if (typeof parsed === "string") throw new Error(parsed);
  return parsed;
}

function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (isFault(error)) return error.code;
    throw error;
  }
  return "opened";
}

test("a sealed value opens to itself, and is another text each time", () => {
  const keys = keyring(oldKey);
  const sealed = seal(keys, binding, "sk-pässwörd");
  expect(open(keys, binding, sealed)).toBe("sk-pässwörd");
  expect(seal(keys, binding, "sk-pässwörd")).not.toBe(sealed);
  expect(sealed).not.toContain("sk-p");
});

test("a sealed value does not open for another tenant, name or use, nor when one bit is changed", () => {
  const keys = keyring(oldKey);
  const sealed = seal(keys, binding, "sk-password");
  for (const other of [{ tenant: "beta" }, { name: "OTHER" }, { use: "job" as const }])
    expect(refusal(() => open(keys, { ...binding, ...other }, sealed))).toBe("secret-unreadable");
  const [form, id, body = ""] = sealed.split(".");
  const bytes = Buffer.from(body, "base64url");
  for (const at of [0, 12, bytes.length - 1]) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    const text = [form, id, changed.toString("base64url")].join(".");
    expect(refusal(() => open(keys, binding, text))).toBe("secret-unreadable");
  }
  expect(refusal(() => open(keys, binding, `${form}.${id}.AAAA`))).toBe("secret-unreadable");
});

test("a keyring seals with its first key and opens with all, so that a key can be replaced", () => {
  const sealed = seal(keyring(oldKey), binding, "sk-password");
  const both = keyring(`${newKey},\n${oldKey}\n`);
  expect(open(both, binding, sealed)).toBe("sk-password");
  const again = seal(both, binding, "sk-password");
  expect(keyIdOf(again)).not.toBe(keyIdOf(sealed));
  expect(open(keyring(newKey), binding, again)).toBe("sk-password");
  expect(refusal(() => open(keyring(newKey), binding, sealed))).toBe("secret-unreadable");
});

test("a text that is no key is refused without being repeated", () => {
  for (const text of ["", "hunter2hunter2", `${oldKey},short`]) {
    const problem = Keyring.parse(text);
    expect(problem).toEqual(expect.any(String));
    expect(String(problem)).not.toMatch(/hunter2|short/);
  }
});
