/**
 * Two more images, only for tests: they show that Berth asks nothing of an image but `sh` and a /workspace.
 *
 *   berth-busybox:test      about 2 MB: busybox-static, its applets as links, and nothing else
 *   berth-entrypoint:test   the same with an ENTRYPOINT that fails at once and a USER of its own, both of which a
 *                           driver must get past
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { refreshLists } from "../setup/apt.mjs";
import { SetupProblem } from "../setup/problem.mjs";
import { outputOf, runLogged, tailOf } from "../setup/run-command.mjs";
import { buildImage, importImage, inspectImage, removeNameless } from "./engine-images.mjs";
import { BUSYBOX_IMAGE, ENTRYPOINT_IMAGE, RECIPE_LABEL, SANDBOX_IMAGE } from "./recipe.mjs";
import { tarOf } from "./tar.mjs";

// Raised by hand when the files made below change; images with a lower one are built again.
const RECIPE = "test-images-1";

const BUSYBOX_SETTINGS = [
  "ENV PATH=/bin",
  "WORKDIR /workspace",
  'CMD ["sh"]',
  `LABEL ${RECIPE_LABEL}=${RECIPE}`,
];

const ENTRYPOINT_DOCKERFILE = `FROM ${BUSYBOX_IMAGE}
ENV IMAGE_SAYS=hello
USER 4242:4242
ENTRYPOINT ["/bin/false"]
CMD ["never", "seen"]
`;

// Where the host has no apt, or no package lists and no right to fetch them, the sandbox image's own apt will do.
const FETCH_DOCKERFILE = `FROM ${SANDBOX_IMAGE} AS fetch
WORKDIR /fetch
RUN apt-get update && apt-get download busybox-static && dpkg -x busybox-static_*.deb . \\
 && mkdir -p root/bin root/etc root/tmp root/workspace && cp bin/busybox root/bin/ \\
 && for applet in $(bin/busybox --list); do [ "$applet" = busybox ] || ln -s busybox "root/bin/$applet"; done
FROM scratch
COPY --from=fetch /fetch/root/ /
ENV PATH=/bin
WORKDIR /workspace
CMD ["sh"]
`;

/** @param {import('../setup/engine-api.mjs').Engine} engine */
export async function findTestImages(engine) {
  const names = [BUSYBOX_IMAGE, ENTRYPOINT_IMAGE];
  const images = await Promise.all(names.map((name) => inspectImage(engine, name)));
  return names.filter((_, index) => images[index]?.Config?.Labels?.[RECIPE_LABEL] !== RECIPE);
}

/**
 * @param {import('../setup/context.mjs').Context} context with an engine that has the sandbox image
 * @param {(text: string) => void} progress
 */
export async function makeTestImages(context, progress) {
  const { engine } = context;
  if (!engine) throw new Error("makeTestImages needs an engine");
  const log = path.join(context.places.logs, "test-images.log");
  mkdirSync(path.dirname(log), { recursive: true });
  const before = await Promise.all(
    [ENTRYPOINT_IMAGE, BUSYBOX_IMAGE].map((name) => inspectImage(engine, name)),
  );
  const labels = { [RECIPE_LABEL]: RECIPE };
  try {
    progress(`building ${BUSYBOX_IMAGE}`);
    const fileSystem = await busyboxFileSystem(context, log).catch(() => undefined);
    if (fileSystem) await importImage(engine, BUSYBOX_IMAGE, fileSystem, { log, settings: BUSYBOX_SETTINGS });
    else await buildImage(engine, BUSYBOX_IMAGE, dockerfileOnly(FETCH_DOCKERFILE), { log, labels });
    progress(`building ${ENTRYPOINT_IMAGE}`);
    await buildImage(engine, ENTRYPOINT_IMAGE, dockerfileOnly(ENTRYPOINT_DOCKERFILE), { log, labels });
  } catch (error) {
    if (error instanceof SetupProblem) throw error;
    throw new SetupProblem("The images for the tests could not be built.", {
      why: error.message,
      logFile: path.relative(context.places.root, log),
      logTail: tailOf(log),
    });
  }
  for (const image of before) if (image) await removeNameless(engine, image.Id);
}

/** The package is unpacked, never installed: the host's own busybox, if any, stays as it is. */
async function busyboxFileSystem(context, log) {
  mkdirSync(context.places.state, { recursive: true });
  const folder = mkdtempSync(path.join(context.places.state, "busybox-"));
  const options = { log, root: context.places.root, cwd: folder };
  try {
    await refreshLists(context, "test-images");
    // As root, apt would drop to its own user for the download, who cannot write here, and warn about it.
    await runLogged("apt-get", ["-o", "APT::Sandbox::User=root", "download", "busybox-static"], options);
    const [file] = readdirSync(folder).filter((name) => name.endsWith(".deb"));
    await runLogged("dpkg-deb", ["--extract", file ?? "", folder], options);
    const program = ["bin", "usr/bin"]
      .map((name) => path.join(folder, name, "busybox"))
      .find((name) => existsSync(name));
    const applets = program && (await outputOf(program, ["--list"]));
    if (!program || !applets)
      throw new Error("the busybox-static package holds no busybox that runs on this machine");
    return busyboxTar(
      readFileSync(program),
      applets.split("\n").filter((name) => name && name !== "busybox"),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function busyboxTar(program, applets) {
  return tarOf([
    { name: "bin/" },
    { name: "bin/busybox", mode: 0o755, bytes: program },
    ...applets.map((applet) => ({ name: `bin/${applet}`, mode: 0o777, linkTo: "busybox" })),
    { name: "etc/" },
    { name: "etc/passwd", bytes: Buffer.from("root:x:0:0:root:/:/bin/sh\n") },
    { name: "etc/group", bytes: Buffer.from("root:x:0:\n") },
    { name: "tmp/", mode: 0o1777 },
    { name: "workspace/" },
  ]);
}

function dockerfileOnly(text) {
  return tarOf([{ name: "Dockerfile", bytes: Buffer.from(text) }]);
}
