import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownAdminKey } from "./admin-key-file.mjs";
import { hostId } from "./host-id.mjs";
import { asName, workerIdFrom } from "./names.mjs";
import { placeInit } from "./place-init.mjs";
import { takeSecrets } from "./secrets.mjs";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "berth-start-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const labels = (number: string) => ({
  "com.docker.compose.project": "berth",
  "com.docker.compose.service": "worker",
  "com.docker.compose.container-number": number,
});

describe("the host's id", () => {
  test("is the disk's: whoever sees the folder has the same, another folder another", () => {
    const other = mkdtempSync(path.join(folder, "other-"));
    const first = hostId(folder, "Rack 7");
    expect(first).toMatch(/^rack-7-[0-9a-f]{6}$/);
    expect(hostId(folder, "renamed")).toBe(first);
    expect(hostId(other, "Rack 7")).not.toBe(first);
  });

  test("is one, when many begin at once", async () => {
    const script = `import { hostId } from ${JSON.stringify(new URL("host-id.mjs", import.meta.url).href)};
      process.stdout.write(hostId(process.argv[1], "m"));`;
    const ids = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const child = spawn(process.execPath, ["--input-type=module", "-e", script, folder]);
        let text = "";
        child.stdout.on("data", (chunk) => {
          text += chunk;
        });
        await once(child, "close");
        return text;
      }),
    );
    expect(new Set(ids)).toEqual(new Set([hostId(folder, "m")]));
    expect(readdirSync(folder)).toEqual([".host"]);
  });
});

describe("a worker's id under compose", () => {
  test("says project, service, number and host, and nothing of the container that is replaced", () => {
    expect(workerIdFrom(labels("2"), "vm-0a1b2c")).toBe("berth-worker-2-vm-0a1b2c");
  });

  test("fits the rule for names however long its parts are, and still tells apart", () => {
    const host = "h".repeat(63);
    const [one, two] = [workerIdFrom(labels("1"), host), workerIdFrom(labels("2"), host)];
    expect(one).toMatch(/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/);
    expect(one).not.toBe(two);
  });

  test("is left to the worker where compose did not make the container", () => {
    expect(workerIdFrom({}, "vm")).toBeUndefined();
  });

  test("is made of letters that names may have", () => {
    expect(asName("_My.Host_")).toBe("my-host");
    expect(asName("…")).toBe("berth");
  });
});

describe("init on the host", () => {
  const place = (content: string) => {
    const file = path.join(folder, "init");
    writeFileSync(file, content);
    return placeInit(folder, file);
  };

  test("lies beside the workspaces, by its content, and everybody may run it", () => {
    const first = place("one");
    expect(readFileSync(first, "utf8")).toBe("one");
    expect(path.dirname(first)).toBe(path.join(folder, ".init"));
    expect(statSync(first).mode & 0o777).toBe(0o755);
    const inode = statSync(first).ino;
    expect(place("one")).toBe(first);
    // Sandboxes that run have it mounted; it must not change under them.
    expect(statSync(first).ino).toBe(inode);
    expect(place("two")).not.toBe(first);
    expect(readFileSync(first, "utf8")).toBe("one");
  });

  test("is put there again when a copy was cut off", () => {
    const first = place("whole");
    writeFileSync(first, "wh");
    expect(place("whole")).toBe(first);
    expect(readFileSync(first, "utf8")).toBe("whole");
  });
});

describe("secrets", () => {
  test("may come as files, without the line's end", () => {
    const file = path.join(folder, "secret");
    writeFileSync(file, "redis://:hush@redis:6379\n");
    const environment: Record<string, string | undefined> = { REDIS_URL: "", REDIS_URL_FILE: file };
    takeSecrets(environment, ["REDIS_URL", "BERTH_ADMIN_KEY"]);
    expect(environment).toEqual({ REDIS_URL: "redis://:hush@redis:6379" });
  });

  test("given twice are refused", () => {
    const both = { REDIS_URL: "redis://a", REDIS_URL_FILE: "/b" };
    expect(() => takeSecrets(both, ["REDIS_URL"])).toThrow("both set");
  });

  test("that nobody gave are made once, for their owner alone", () => {
    const file = path.join(folder, "admin-key");
    const key = ownAdminKey(file);
    expect(key).toMatch(/^[\w-]{43}$/);
    expect(ownAdminKey(file)).toBe(key);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
