/**
 * The README's pictures: a fleet of its own is started and given work; the board is photographed in a headless Chromium, and so is what
 * `berth fleet` prints on a terminal. `node --conditions=@berth/source test/screenshots.ts` writes docs/images.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Berth } from "@berth/client";
import type { Browser } from "playwright-core";
import { LocalChild } from "../apps/cli/src/local/child.ts";
import { ansiPage } from "./support/ansi-page.ts";
import { browserNote, browserPath, withBrowser } from "./support/browser.ts";

const images = fileURLToPath(new URL("../docs/images/", import.meta.url));
const program = (app: string) => fileURLToPath(new URL(`../apps/${app}/src/main.ts`, import.meta.url));
const adminKey = "a-key-for-the-pictures-of-the-readme";
const size = { width: 1280, height: 760 };

if (browserPath === undefined) throw new Error(`no pictures${browserNote}`);
const directory = await mkdtemp(join(tmpdir(), "berth-pictures-"));
const redisUrl = `unix://${join(directory, "redis.sock")}`;
const children: LocalChild[] = [];
let berth: Berth | undefined;
try {
  const socket = join(directory, "redis.sock");
  await start("redis", "redis-server", [
    "--port",
    "0",
    "--unixsocket",
    socket,
    "--dir",
    directory,
    "--save",
    "",
  ]);
  berth = new Berth({ redis: redisUrl });
  const [gateway] = await Promise.all([
    startApp("gateway", { BERTH_GATEWAY_PORT: "0", BERTH_ADMIN_KEY: adminKey }),
    ...["a-1", "a-2", "b-1"].map((id) =>
      startApp("worker", { BERTH_WORKER_ID: `worker-${id}`, BERTH_HOST: `host-${id[0]}` }),
    ),
  ]);
  await work(berth);
  const url: string = JSON.parse(gateway.readyLine).address;
  const fleet = await onTerminal("fleet --once");
  await mkdir(images, { recursive: true });
  await withBrowser(async (browser) => {
    await photographBoard(browser, url);
    await photographText(browser, "$ berth fleet --once", fleet);
  });
} finally {
  await berth?.close();
  const [redis, ...rest] = children;
  await Promise.all(rest.map((child) => child.stop()));
  await redis?.stop();
  await rm(directory, { recursive: true, force: true });
}

async function start(name: string, file: string, args: string[], env = {}, readyWord?: string) {
  const child = new LocalChild({
    name,
    program: file,
    args,
    env: { PATH: process.env.PATH ?? "", ...env },
    logFile: join(directory, `${name}.log`),
    ...(readyWord === undefined ? {} : { readyWord }),
  });
  children.push(child);
  await child.ready();
  return child;
}

function startApp(app: "gateway" | "worker", env: Record<string, string>): Promise<LocalChild> {
  const engine = process.env.DOCKER_HOST === undefined ? {} : { DOCKER_HOST: process.env.DOCKER_HOST };
  const places = {
    BERTH_WORKSPACES: join(directory, "workspaces"),
    BERTH_ARTIFACTS: join(directory, "artifacts"),
    BERTH_FLEET: `pictures-${process.pid}`,
    BERTH_MAX_SANDBOXES: "4",
  };
  const args = ["--conditions=@berth/source", program(app)];
  const all = { REDIS_URL: redisUrl, ...engine, ...places, ...env };
  return start(env.BERTH_WORKER_ID ?? app, process.execPath, args, all, `${app}.started`);
}

/** Some that ended, some that run, some that wait, one that is scheduled, one that died, a tenant that is paused. */
async function work(berth: Berth): Promise<void> {
  const tenants = ["acme", "globex", "hooli", "initech", "stark", "umbrella", "wayne"];
  const orders = Array.from({ length: 140 }, (_, index) => ({
    tenant: tenants[index % tenants.length] ?? "acme",
    session: `s${index % 4}`,
    request: { kind: "exec" as const, command: `python3 -c 'print(${index} ** 2)' >> squares.txt` },
  }));
  for await (const _ of berth.batch(orders, { id: "nightly" }).results());
  await berth.tenant("stark").exec("exit 7", { retry: { attempts: 2, backoffMs: 50 } });
  await berth.tenant("umbrella").pause();
  for (const tenant of ["acme", "globex", "wayne"]) {
    await berth.tenant(tenant).write("train.py", "import time; time.sleep(600)");
    for (const [id, session] of [
      ["train-1", "train"],
      ["train-2", "train"],
      ["review-1", "review"],
    ])
      await berth
        .tenant(tenant)
        .exec("python3 train.py --epochs 30", { session, id: `${tenant}-${id}` })
        .enqueued();
  }
  await berth.tenant("umbrella").exec("make test").enqueued();
  await berth.tenant("hooli").exec("python3 report.py", { delayMs: 3_600_000 }).enqueued();
  // Workers say how they are every two seconds; what they said before is not the picture.
  const submittedMs = Date.now();
  const isShown = async () => {
    const workers = await berth.workers();
    const fresh = workers.every(({ lastSeenMs }) => lastSeenMs > submittedMs);
    return fresh && workers.reduce((sum, { running }) => sum + running, 0) === 6;
  };
  while (!(await isShown())) await sleep(200);
}

/** What a person would see. */
async function onTerminal(line: string): Promise<string> {
  const command = `stty cols 132; exec '${process.execPath}' --conditions=@berth/source '${program("cli")}' ${line}`;
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    env: { PATH: process.env.PATH ?? "", TERM: "xterm", REDIS_URL: redisUrl },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let seen = "";
  child.stdout.on("data", (chunk: Buffer) => {
    seen += chunk;
  });
  await once(child, "close");
  return seen;
}

async function photographBoard(browser: Browser, url: string): Promise<void> {
  const page = await browser.newPage({ viewport: size });
  await page.goto(`${url}/board/`);
  await page.getByLabel("Admin key").fill(adminKey);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("dead letters").first().waitFor();
  await page.goto(`${url}/board/queue/tenants%3Aacme?status=active`);
  await page.getByText("train.py").first().waitFor();
  await page.screenshot({ path: join(images, "board.png") });
}

async function photographText(browser: Browser, title: string, text: string): Promise<void> {
  const page = await browser.newPage({ viewport: { width: size.width, height: 100 } });
  await page.setContent(ansiPage(title, text));
  await page.locator("figure").screenshot({ path: join(images, "fleet.png") });
}
