import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownAdminKey } from "./admin-key-file.mjs";
import { hostId } from "./host-id.mjs";
import { asName, workerIdFrom } from "./names.mjs";
import { makePasswords } from "./password-files.mjs";
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

describe("host's id", () => {
  test("the host's id belongs to the disk: every process with the folder has the same, another folder has another", () => {
    const other = mkdtempSync(path.join(folder, "other-"));
    const first = hostId(folder, "Rack 7");
    expect(first).toMatch(/^rack-7-[0-9a-f]{6}$/);
    expect(hostId(folder, "renamed")).toBe(first);
    expect(hostId(other, "Rack 7")).not.toBe(first);
  });

  test("workers that start at the same moment have one host's id", async () => {
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

describe("worker's id under compose", () => {
  test("a worker's id under compose is made of project, service, number and host, and not of the container's name or id", () => {
    expect(workerIdFrom(labels("2"), "vm-0a1b2c")).toBe("berth-worker-2-vm-0a1b2c");
  });

  test("a worker's id under compose is a valid and distinct name also when its parts are long", () => {
    const host = "h".repeat(63);
    const [one, two] = [workerIdFrom(labels("1"), host), workerIdFrom(labels("2"), host)];
    expect(one).toMatch(/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/);
    expect(one).not.toBe(two);
  });

  test("a worker in a container that compose did not make chooses its id itself", () => {
    expect(workerIdFrom({}, "vm")).toBeUndefined();
  });

  test("a worker's id under compose is made of letters that names may have", () => {
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

  test("init on the host lies beside the workspaces, by its content, and every user may run it", () => {
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

  test("init on the host is put there again when a copy was cut off", () => {
    const first = place("whole");
    writeFileSync(first, "wh");
    expect(place("whole")).toBe(first);
    expect(readFileSync(first, "utf8")).toBe("whole");
  });
});

describe("secrets", () => {
  test("secrets may come as files, without the line's end", () => {
    const file = path.join(folder, "secret");
    writeFileSync(file, "redis://:hush@redis:6379\n");
    const environment: Record<string, string | undefined> = { REDIS_URL: "", REDIS_URL_FILE: file };
    takeSecrets(environment, ["REDIS_URL", "BERTH_ADMIN_KEY"]);
    expect(environment).toEqual({ REDIS_URL: "redis://:hush@redis:6379" });
  });

  test("secrets given as a variable win over their file", () => {
    const both: Record<string, string | undefined> = { REDIS_URL: "redis://a", REDIS_URL_FILE: "/none" };
    takeSecrets(both, ["REDIS_URL"]);
    expect(both).toEqual({ REDIS_URL: "redis://a" });
    expect(() => takeSecrets({ REDIS_URL_FILE: "/none" }, ["REDIS_URL"])).toThrow("/none");
  });

  test("a secret that was not given is generated once, readable by its owner only", () => {
    const file = path.join(folder, "admin-key");
    const key = ownAdminKey(file);
    expect(key).toMatch(/^[\w-]{43}$/);
    expect(ownAdminKey(file)).toBe(key);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("passwords of Redis and Grafana are generated once, and a given one wins", async () => {
    const folders = { redis: path.join(folder, "redis"), grafana: path.join(folder, "grafana") };
    for (const one of Object.values(folders)) mkdirSync(one);
    const read = (name: string) => readFileSync(path.join(folders.redis, name), "utf8").trim();
    makePasswords({ BERTH_GRAFANA_PASSWORD: "" }, folders);
    const first = read("password");
    expect(first).toMatch(/^[\w-]{43}$/);
    expect(readFileSync(path.join(folders.grafana, "password"), "utf8")).not.toContain(first);
    makePasswords({}, folders);
    expect([read("password"), read("url")]).toEqual([first, `redis://:${first}@redis:6379`]);
    makePasswords({ BERTH_REDIS_PASSWORD: 'a "b" \\@ c' }, folders);
    expect(new URL(read("url")).password).toBe(encodeURIComponent(read("password")));
  });

  test("the generated password of Redis opens it, and the user of its health check can only ping", async () => {
    makePasswords({ BERTH_REDIS_PASSWORD: 'a "word"' }, { redis: folder, grafana: folder });
    const conf = new URL("../../redis/redis.conf", import.meta.url).pathname;
    const socket = path.join(folder, "redis.sock");
    const own = [
      "--include",
      path.join(folder, "auth.conf"),
      "--port",
      "0",
      "--unixsocket",
      socket,
      "--dir",
      folder,
    ];
    const server = spawn("redis-server", [conf, ...own], { stdio: "ignore" });
    const cli = (...args: string[]) => {
      const { stdout, stderr } = spawnSync("redis-cli", ["-e", "--no-auth-warning", "-s", socket, ...args]);
      return `${stdout}${stderr}`.trim();
    };
    const health = ["--user", "health", "--pass", "any"];
    try {
      await expect.poll(() => cli(...health, "ping")).toBe("PONG");
      expect(cli("ping")).toContain("NOAUTH");
      expect(cli(...health, "keys", "*")).toContain("NOPERM");
      expect(cli("--pass", 'a "word"', "config", "get", "maxmemory")).toContain(String(2 * 1024 ** 3));
    } finally {
      const gone = once(server, "exit");
      server.kill();
      await gone;
    }
  });
});
