import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ProgramEnd, root, runProgram } from "../support/doc-blocks.ts";

export type PackageManager = "npm" | "pnpm";

/** Variables that an installation gets: those that name caches, registries and proxies. */
const kept =
  /^(HOME|PATH|XDG_\w+|NODE_EXTRA_CA_CERTS|\w+_proxy|npm_config_(registry|userconfig|cache|cafile))$/i;
const environment = Object.fromEntries(
  Object.entries(process.env).filter(
    (pair): pair is [string, string] => kept.test(pair[0]) && pair[1] !== undefined,
  ),
);

/** A user's project in an empty directory, outside the repository. */
export class Project {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** Installs one tarball with its dependencies, and nothing else. */
  static async with(
    tarball: string,
    { by, directory }: { by: PackageManager; directory: string },
  ): Promise<Project> {
    await mkdir(directory);
    await writeFile(
      join(directory, "package.json"),
      JSON.stringify({ name: "theirs", private: true, type: "module" }),
    );
    const args = { npm: ["install", "--no-audit", "--no-fund"], pnpm: ["add"] }[by];
    await promisify(execFile)(by, [...args, "--prefer-offline", tarball], {
      cwd: directory,
      env: environment,
    });
    return new Project(directory);
  }

  /** TypeScript's errors for a program, with its strictest settings. */
  async typeErrors(file: string, code: string): Promise<string> {
    await writeFile(join(this.directory, file), code);
    const compilerOptions = {
      ...{
        strict: true,
        skipLibCheck: false,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
      },
      ...{
        module: "nodenext",
        target: "es2024",
        types: ["node"],
        typeRoots: [join(root, "node_modules/@types")],
      },
    };
    await writeFile(
      join(this.directory, "tsconfig.json"),
      JSON.stringify({ compilerOptions: { ...compilerOptions, noEmit: true }, files: [file] }),
    );
    return (await runProgram(join(root, "node_modules/.bin/tsc"), ["-p", this.directory])).stdout;
  }

  async run(file: string, code: string, env: Readonly<Record<string, string>> = {}): Promise<ProgramEnd> {
    await writeFile(join(this.directory, file), code);
    return runProgram(process.execPath, [join(this.directory, file)], env);
  }
}
