import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { breaches, importsOf, type PackageSources, readPackages, variablesRead } from "./boundaries.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

function planted(change: Partial<PackageSources>): PackageSources[] {
  return [
    {
      name: "@berth/protocol",
      dependencies: [],
      imports: new Map(),
      environmentReaders: [],
      variableReads: new Map(),
      keySpellers: [],
      ...change,
    },
  ];
}

describe("import rules", () => {
  test("the packages keep to their vendors and to the direction of dependencies", async () => {
    const packages = await readPackages(root);
    expect(packages.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["@berth/protocol", "@berth/init", "@berth/sandbox", "@berth/cli"]),
    );
    expect(breaches(packages)).toEqual([]);
  });

  test("a vendor in the wrong package.json is found", () => {
    expect(breaches(planted({ name: "@berth/cli", dependencies: ["dockerode"] }))).toEqual([
      "@berth/cli's package.json uses dockerode, which only @berth/sandbox may",
    ]);
  });

  test("a vendor imported by a source file is found, a subpath and a dynamic import too", () => {
    const source = `import x from "bullmq";\nconst y = await import("dockerode/lib/exec.js");\nimport "ioredis";`;
    expect(importsOf(source)).toEqual(["bullmq", "ioredis", "dockerode/lib/exec.js"]);
    expect(importsOf('import {\n  a,\n} from "zod";\nexport { b } from "./b.ts";')).toEqual([
      "zod",
      "./b.ts",
    ]);
    const found = breaches(
      planted({ name: "@berth/sandbox", imports: new Map([["a.ts", importsOf(source)]]) }),
    );
    expect(found).toContain("a.ts uses bullmq, which only @berth/ledger may");
    expect(found).toContain("a.ts uses ioredis, which only @berth/redis may");
    expect(found).toContain("a.ts imports dockerode, which @berth/sandbox does not declare");
  });

  test("anything of a vendor's scope in the wrong package is found", () => {
    const imports = new Map([["a.ts", importsOf('const x = await import("@opentelemetry/api");')]]);
    expect(
      breaches(planted({ name: "@berth/tenancy", dependencies: ["@opentelemetry/core"], imports })),
    ).toEqual([
      "@berth/tenancy's package.json uses @opentelemetry/core, which only @berth/service may",
      "a.ts uses @opentelemetry/api, which only @berth/service may",
      "a.ts imports @opentelemetry/api, which @berth/tenancy does not declare",
    ]);
  });

  test("a dependency against the direction is found", () => {
    expect(breaches(planted({ dependencies: ["@berth/sandbox"] }))).toEqual([
      "@berth/protocol's package.json uses @berth/sandbox, against the direction of dependencies",
    ]);
  });

  test("a driver imported by a package that may import only the Sandbox port is found", () => {
    const source =
      'import type { Sandbox } from "@berth/sandbox/port";\nimport { DockerDriver } from "@berth/sandbox";';
    const imports = new Map([["a.ts", importsOf(source)]]);
    expect(breaches(planted({ name: "@berth/jobs", dependencies: ["@berth/sandbox"], imports }))).toEqual([
      "a.ts imports @berth/sandbox, but @berth/jobs may import only @berth/sandbox/port",
    ]);
  });

  test("anything but zod in protocol is found", () => {
    expect(breaches(planted({ dependencies: ["zod", "pino"] }))).toEqual([
      "@berth/protocol's package.json uses pino, but @berth/protocol imports only zod",
    ]);
  });

  test("a key of Redis that another package than the ledger spells is found", () => {
    const keySpellers = ["apps/gateway/src/audit.ts"];
    expect(breaches(planted({ name: "@berth/gateway", keySpellers }))).toContain(
      "apps/gateway/src/audit.ts spells a key of Redis, which only the ledger may",
    );
  });

  test("reading the environment outside an app's config.ts is found", () => {
    const environmentReaders = ["packages/sandbox/src/index.ts", "apps/worker/src/config.ts"];
    expect(breaches(planted({ environmentReaders }))).toEqual([
      "packages/sandbox/src/index.ts reads the environment, which only an app's config.ts may",
    ]);
  });

  test("a variable of Berth's that is read outside an app's config.ts is found", () => {
    const source = `
      const { BERTH_FLEET, host: { BERTH_HOST: host }, ...rest } = config;
      const open = ({ BERTH_URL: url }: Config) => \`\${url} \${config.BERTH_KEY}\`;
      if (this.parts?.config?.["BERTH_LOG"] === read) open(rest);
    `;
    const names = ["BERTH_FLEET", "BERTH_HOST", "BERTH_URL", "BERTH_KEY", "BERTH_LOG"];
    expect(variablesRead(source).sort()).toEqual(names.sort());
    const variableReads = new Map([
      ["apps/worker/src/member.ts", ["BERTH_LEASE_MS", "BERTH_HOST"]],
      ["apps/worker/src/config.ts", ["BERTH_HOST"]],
    ]);
    expect(breaches(planted({ variableReads }))).toEqual([
      "apps/worker/src/member.ts reads BERTH_LEASE_MS, BERTH_HOST, which only an app's config.ts may",
    ]);
  });

  test("a variable of Berth's may be named in a message, a schema and a child's environment", () => {
    const source = `
      // BERTH_LOG of config.BERTH_LOG
      export const schema = { BERTH_LOG: z.string().describe("config.BERTH_LOG wins over it") };
      spawn(program, { env: { BERTH_LOG: "debug" } });
      interface Environment { BERTH_LOG: string }
      throw new Error(\`BERTH_LOG: \${problem}; { BERTH_LOG } is not { BERTH_LOG: "loud" }\`);
    `;
    expect(variablesRead(source)).toEqual([]);
  });
});
