import { type MergeRule, type ProfileField, profileFields } from "@berth/protocol";
import { environment } from "../apps/worker/src/config.ts";
import { profileVariables } from "../apps/worker/src/profile-variables.ts";

const intro = `# Profiles

A profile is everything about a sandbox as one value: image, network, limits, mode. Each job's profile is merged from
layers. The worker that holds the sandbox merges them and enforces the result.

## Layers

| layer | where it is set | what it may do |
|---|---|---|
| built-in | the defaults below | |
| variables | the worker's environment: see [variables](#variables) | set any field |
| file | \`profiles.NAME\` in the worker's [configuration file](configuration.md) | set any field of that profile |
| live profile | \`profile.NAME\` in Redis | set any field of that profile, or make a profile that no file has |
| fleet | \`fleet\` in Redis | tighten every profile |
| tenant | \`tenant.ID\` in Redis | tighten, choose, and name the profile of jobs that name none |
| agent | \`agent.TENANT.NAME\` in Redis | the same, for jobs of that agent |
| key | \`settings\` of a gateway key | tighten and choose |
| job | \`settings\` of a job | tighten and choose |

The first four are the operator's. Each replaces what the one above it says. The others only tighten, or choose from a
list that the profile has. A tenant layer that says more than its profile allows has no effect for that field. A job
that asks for more is refused with \`not-allowed\`, and one that chooses what is not in the list with \`not-granted\`.

A profile other than \`default\` must be [granted](operations.md#grants) to the tenant, whoever names it.

An agent's name is the caller's to choose. An agent layer therefore holds back an agent only if the program that submits
its jobs names it truthfully.

## Fields

Sizes may be written as \`512m\` or \`1g\`, times as \`500ms\`, \`30s\`, \`5m\`, \`2h\` or \`1d\`. Numbers alone are bytes and
milliseconds. A file is YAML or JSON:

\`\`\`yaml
BERTH_MEMORY: 1g
profiles:
  default:
    images: ["python:3.13-slim", "node:24-slim"]
  net:
    network: bridge
    exec: { timeoutMs: 5m }
\`\`\`

\`0\` is no cap where the table says so, and counts as more than any number. The column *below* says what the layers below the operator's may do with a field.

| field | default | below | meaning |
|---|---|---|---|
`;

const outro = `
## Modes

\`mode\` says whose jobs have a sandbox. What has none is refused at once with \`sandbox-disabled\`, and an agent reads
\`ERR: /exec is disabled in this execution context — …\`. Berth never runs anything on the host instead. Files are touched
only inside a sandbox, so jobs that read and write files are refused too. A sandbox can always be destroyed.

\`non-main\` refuses the jobs of the agents \`main\` and \`default\`, and of jobs that name no agent.

## Files and mounts

\`workspace\` says what commands find at \`/workspace\`:

- \`rw\`: the sandbox's workspace. It outlives containers and workers.
- \`ro\`: the same, and nothing in it can be changed, also not by jobs that write files or run \`code\`.
- \`none\`: an empty directory in memory of \`limits.tmpfsBytes\`. It goes with the container. The workspace stays as it
  is, and is not seen.

A \`destroy\` job empties the workspace whatever \`workspace\` says.

More of the host is mounted in two steps. The host's operator lists directories in \`BERTH_MOUNTS\` of the worker. A
profile names directories beneath them in \`mountable\`, and \`mounts\` chooses among those names. A mount that leads
elsewhere, also by a symbolic link, is refused with \`mount-refused\`. Commands use a mount as the sandbox's own uid, so
the files need permissions for it. Give \`rw\` only to directories that tenants may share.

## Environment

Commands see the image's \`ENV\`, then Berth's own \`HOME\`, \`TMPDIR\`, \`USER\`, \`LOGNAME\` and \`SHELL\`, then \`env\` of the
profile's layers, then the job's. Nothing of the worker's environment is in it. Where the image says nothing, \`PATH\` and
\`LANG=C.UTF-8\` are Berth's.

## What an engine may not enforce

\`berth doctor engine\` names the fields that the engine or its kernel cannot enforce. An engine without AppArmor ignores
\`apparmor\`; a kernel that does not account for swap ignores \`limits.swapBytes\`. With \`gpus\` on an engine without a runtime
for them, or \`readOnlyRoot: false\` on a storage driver without quotas, no sandbox starts, and its jobs are refused in the
engine's own words. An [engine proxy](deploy.md#the-engines-socket) lets through what its own rules list.

## Live changes

\`\`\`sh
berth profile set profile.default limits.memoryBytes=1g      # every tenant, unless another profile is named
berth profile set tenant.acme limits.cpus=0.5 network=none   # one tenant, on top of its profile
berth profile set fleet mode=off                             # nothing runs until it is taken back
berth profile get tenant.acme                                # what is set, since when, by whom
berth profile diff tenant.acme --file acme.yaml              # what a file would change
berth profile history tenant.acme
berth profile rollback tenant.acme 7
\`\`\`

The same through HTTP: \`/v1/profiles\` ([http.md](http.md)); and in TypeScript: \`berth.profiles\`.

- **All or nothing.** A layer that is not valid is refused with every reason, and nothing changes.
- **Without a restart.** Workers hear of a change at once. A worker that missed the message notices within ten seconds.
- **Running jobs end as they began.** An idle sandbox whose profile is another from then on gets a fresh container before
  its next job. A busy one gets it when its jobs have ended. Files in the workspace stay.
- **Audited.** The gateway's audit and the layer's own history tell who changed it. A history has the last 50 changes.
- **No double edit.** \`set --if-version N\` is refused when the layer was changed since.

Workers keep a copy of all live layers, so a job asks Redis for none of them.

## Variables

These set a field for every profile of one worker, unless the file or a live layer says otherwise.

| variable | meaning |
|---|---|
`;

/** docs/profiles.md, made from the schema. `node --conditions=@berth/source test/profile-page.ts > docs/profiles.md` writes it. */
export function profilePage(): string {
  const fields = profileFields.map(
    (field) =>
      `| \`${field.path}\` | ${shownDefault(field)} | ${ruleText(field.rule)} | ${field.schema.description ?? ""} |`,
  );
  const variables = Object.keys(profileVariables).map(
    (name) => `| \`${name}\` | ${environment.shape[name as keyof typeof profileVariables].description} |`,
  );
  return `${intro}${fields.join("\n")}\n${outro}${variables.join("\n")}\n`;
}

function shownDefault({ schema, name }: ProfileField): string {
  const { data } = schema.safeParse(undefined);
  if (data === undefined) return "";
  if (typeof data === "number" && name.endsWith("Bytes")) return `\`${inUnits(data, sizeUnits)}\``;
  if (typeof data === "number" && name.endsWith("Ms")) return `\`${inUnits(data, timeUnits)}\``;
  return `\`${JSON.stringify(data).replaceAll('"', "")}\``;
}

const sizeUnits = { g: 1024 ** 3, m: 1024 ** 2, k: 1024 };
const timeUnits = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** In the largest unit that it is a whole number of. */
function inUnits(value: number, units: Readonly<Record<string, number>>): string {
  const [unit, size] = Object.entries(units).find(([, one]) => value >= one && value % one === 0) ?? ["", 1];
  return `${value / size}${unit}`;
}

function ruleText(rule: MergeRule): string {
  switch (rule.kind) {
    case "lower":
      return rule.zeroIsNoCap ? "lower; 0 is no cap" : "lower";
    case "ranked":
      return `stricter: ${rule.loosestFirst.join(", then ")}`;
    case "chosen":
      return `one of \`${rule.from}\`${rule.always === undefined ? "" : `, or \`${rule.always}\``}`;
    case "named":
      return `names in \`${rule.in}\``;
    case "subset":
      return "only some of these";
    case "free":
      return "add and replace";
    case "operator":
      return "nothing";
  }
}

if (import.meta.main) process.stdout.write(profilePage());
