import { ceilings, type MergeRule, type ProfileField, profileFields } from "@berth/protocol";
import { environment } from "../apps/worker/src/config.ts";
import { profileVariables } from "../apps/worker/src/profile-variables.ts";
import { wrappedMarkdown } from "./support/wrapped-markdown.ts";

const intro = `# Profiles

A profile is all settings of a sandbox as one value: image, network, limits, mode. Each job's profile is merged from
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

The first four are the operator's. Each replaces fields of the one above it. The others only tighten, or choose from a
list that the profile has. Where a layer of a tenant, agent or key asks for more than the layers above allow, that field
of it has no effect. That also holds when the layers above were tightened later. A job that asks for more itself is
refused with \`not-allowed\`. A choice that is not in the list is refused with \`not-granted\`.

A profile other than \`default\` must be [granted](operations.md#grants) to the tenant. That holds for every layer and job that names it.

An agent's name is the caller's to choose. An agent layer therefore holds back an agent only if the program that submits
its jobs names it truthfully, or has a key that fixes the agent (\`berth key create NAME --tenant TENANT --agent AGENT\`).
All jobs of such a key are that agent's. Naming another agent, or none, does not escape the layer. The settings of a key
hold for all its jobs in any case.

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

Where the table allows \`0\`, it means no cap, and counts as more than any number. The column *below* has what the layers
below the operator's may do with a field.

| field | default | below | meaning |
|---|---|---|---|
`;

const afterFields = `
## Ceilings

Ceilings bound what one tenant has of everything, over all its sandboxes. \`ceilings\` in the layer \`fleet\` changes the
default of every tenant, and in \`tenant.ID\` that of one. The tenant's replaces the fleet's, also with a higher value:

\`\`\`sh
berth profile set fleet ceilings.waitingJobs=10000
berth profile set tenant.acme ceilings.waitingJobs=50000 ceilings.heldSandboxes=8
berth tenant usage acme
\`\`\`

A job or change that would pass a ceiling is refused with \`tenant-full\`, which names the ceiling and its value. The script in Redis
that accepts the work compares it, so producers that submit at the same moment do not pass it together. Sandboxes past
\`heldSandboxes\` wait, and \`why\` gives that reason. \`0\` means no ceiling. Jobs in the sandbox that all tenants share are counted
apart from those in a tenant's own.

\`workspaceBytes\` and \`resultBytes\` refuse the next job, and stop none that was accepted:

- A worker measures a workspace while commands run in it and after them, and reports it when it renews its lease (four
  times within \`BERTH_LEASE_MS\`) and when it gives the sandbox up. Between two reports, and by jobs that were accepted, the sum can pass the ceiling. Each workspace still has its own quota. Each agent's directory and the tenant's tools count once, as a
  sandbox that may write them measured them last, also while no sandbox has them.
- A tenant past \`workspaceBytes\` can still read, list, \`remove\`, \`move\`, take snapshots, \`stop\` and \`destroy\`. A command
  is refused, also one that would remove files.
- \`resultBytes\` counts what the events of ended jobs hold: output, and the result. They expire a day after the job's end,
  and count up to an hour longer. What Redis needs beside them for each job is not counted.

| ceiling | default | what it bounds |
|---|---|---|
`;

const outro = `
## Modes

\`mode\` decides whose jobs have a sandbox. Any other job is refused at once with \`sandbox-disabled\`, and an agent reads
\`ERR: /exec is disabled in this execution context — …\`. Berth never runs anything on the host instead. Files are touched
only inside a sandbox, so jobs that read and write files are refused too. A sandbox can always be stopped and
destroyed, even with a revoked grant or an invalid layer. If its own profile is missing or does not start, the worker
uses a container with the settings of its own variables for that.

\`non-main\` refuses the jobs of the agents \`main\` and \`default\`, and of jobs that name no agent.

## Scope

\`scope\` stands in the layers \`fleet\`, \`tenant.ID\` and \`agent.TENANT.NAME\`, and is no field of a profile. It decides which
jobs share a sandbox if they name no scope themselves: \`tenant\`, \`session\` or \`agent\`. The agent's layer wins over the
tenant's, and the tenant's over the fleet's. Where no layer sets it, it is \`BERTH_SCOPE\` of the workers, and \`tenant\`
without that.

- The program that submits a job looks it up: the client, the gateway, or for a schedule the worker that runs it. All
  read the same layers in Redis. The job then carries its scope, so retries and re-driven jobs keep it.
- Each keeps an answer for two seconds. After a change, jobs go to the new sandbox within that time. Files in the old one stay.
- A job that is submitted again under its id after such a change is refused with \`job-id-taken\`: it belongs to the old sandbox.
- An MCP server looks it up when it starts, and keeps it.
- It is never \`shared\`. A job has to ask for the sandbox that all tenants share.
- \`GET /v1/tenants/ID/scope\` and \`berth.scopeOf()\` return it.

## Files and mounts

\`workspace\` decides what commands find at \`/workspace\`:

- \`rw\`: the sandbox's workspace. It outlives containers and workers.
- \`ro\`: the same, and nothing in it can be changed, also not by jobs that write files or run \`code\`.
- \`none\`: an empty directory in memory of \`limits.tmpfsBytes\`. It goes with the container. The workspace stays as it
  is, and commands do not see it.

Two more directories are shared by sandboxes of one tenant, and outlive them. \`rw\`, \`ro\` and \`none\` mean the same there.
The sandbox that all tenants share has neither.

- \`agentAccess\`: \`/agent\`, the agent's own directory. All sandboxes with that agent's jobs have the same one. Jobs of two
  agents then never share a container: it is replaced between them, and its workspace stays.
- \`toolsAccess\`: \`/tools\`, the tenant's tools. \`/tools/bin\` comes first in \`PATH\`. Give \`ro\` to all jobs, and
  \`rw\` in a profile for jobs that install tools. \`berth tools ls TENANT\`, \`tenant.tools()\` and a \`list\` job of \`/tools\`
  list them, with size and date.
- Their files belong to a group of the tenant's. The umask is 002 there, so that each sandbox can change what another made.
- Where a sandbox can write them, they count for its \`limits.workspaceBytes\` and \`limits.workspaceEntries\`.
- Jobs that read files (\`read\`, \`stat\`, \`list\`, \`glob\`, \`grep\`) take absolute paths in \`/agent\`, \`/tools\` and
  [\`/team\`](teams.md). Jobs that change files do not. Commands use all of them.
- A \`destroy\` job leaves them, and so does \`BERTH_PRUNE_DAYS\`. Of a tenant that is gone for good the operator removes
  them, on the host that has them: \`.tools/ID\` and \`.agents/ID.*\` in the workspaces' folder, and then the keys
  \`berth:{ID}:shared-homes\`, \`berth:{ID}:workspaces\` and \`berth:{ID}:name\` of Redis.
- Under local storage each host has its own; see [homes](#homes).

### Homes

Under local storage (\`BERTH_STORAGE=local\`) each host has its own disk. The first sandbox of a tenant that has tools, or a
directory of that agent, decides which host has them. All sandboxes of the tenant that share them live on that host from
then on. \`berth why\` gives that as the reason while one waits for it. A sandbox whose workspace is on another host already is refused with
\`home-conflict\`. The files of a [peer](teams.md) tie a sandbox to their host in the same way.
To move tools, stop the tenant's jobs, copy \`.tools/TENANT\` of the workspaces' folder to the other host, and
set the field \`tools\` of the Redis hash \`berth:{TENANT}:shared-homes\` to it. \`.agents/TENANT.AGENT\` is moved alike.

A \`destroy\` job empties the workspace, also with \`ro\` and \`none\`.

More of the host is mounted in two steps. The host's operator lists directories in \`BERTH_MOUNTS\` of the worker. A
profile names directories beneath them in \`mountable\`, and \`mounts\` chooses among those names. A mount that leads
elsewhere, also by a symbolic link, is refused with \`mount-refused\`. So is one that lies beneath a \`rw\` directory of
the same \`mountable\`: a tenant that writes there could replace it between the worker's check and the engine's mount. For the
same reason, name no directory that tenants can change in another way, such as by another profile. Commands use a mount as the sandbox's own uid, so
the files need permissions for it. Give \`rw\` only to directories that tenants may share.

## Environment

Commands see the image's \`ENV\`, then Berth's own \`HOME\`, \`TMPDIR\`, \`USER\`, \`LOGNAME\` and \`SHELL\`, then \`env\` of the
profile's layers, then what \`passthroughEnv\` names, then the [tenant's secrets](secrets.md), then the job's own
variables. Where the image sets none, \`PATH\` is Berth's, and \`LANG\` and \`TERM\` are the worker's, or \`C.UTF-8\` and
\`dumb\`. Nothing else of the worker's environment is in it. With \`passthroughEnv=USER\`, \`USER\` is the worker's too, if it
has one.

Names such as \`LD_PRELOAD\`, \`NODE_OPTIONS\` and \`BASH_ENV\` make programs run code that their caller did not name. Berth
refuses them wherever a variable is set.

## Set-up command

\`setup.command\` runs once in each container, before its first job, as the sandbox's own user. Only the operator's layers
set it. It has its own time (\`setup.timeoutMs\`).

- It runs again in each new container: after a crash, a change of the profile, or when the sandbox was idle for long. A
  worker that adopts a container does not run it again.
- \`setup.network\` gives it a network that the sandbox's commands do not have. It then runs in a container of its own,
  before theirs, on the same workspace. What it writes to \`/tmp\` or to the root file system goes with that container.
- When it does not end with 0, the job is refused with \`setup-failed\` and the last 4 KiB of its output. The next job
  tries again in a fresh container. A \`destroy\` job does not need it.
- \`GET /v1/fleet/sandboxes\`, \`berth.sandboxes()\` and \`berth fleet --json\` show how it ended last, with its output. Workers log
  \`sandbox.set-up\`.

### Set-up as root

With \`setup.root: true\` the command runs as root, such as \`apt-get install\`, and what it writes becomes an image. All
sandboxes of the profile then start from that image, with the usual hardening: none of their commands is ever root, and
the root file system stays read-only.

\`\`\`yaml
profiles:
  default:
    setup:
      root: true
      command: apt-get update && apt-get install -y --no-install-recommends ffmpeg && rm -rf /var/lib/apt/lists/*
      network: bridge
      timeoutMs: 10m
\`\`\`

- It runs once on each engine, in a container of the profile's image. The first sandbox that needs it waits for it,
  and others beside it. Nothing of a tenant is there: no workspace, no link, no mount, no secret, and none of the
  profile's variables. \`HOME\` is root's own. What it writes to volumes of the image is not kept.
- Its capabilities are \`CHOWN\`, \`DAC_OVERRIDE\`, \`FOWNER\`, \`FSETID\`, \`SETGID\` and \`SETUID\`, which package managers
  need. It has the sandbox's system calls, and the profile's limits of memory, cpus, processes and open files and its
  network as the operator's layers and \`fleet\` have them. No layer of a tenant, an agent, a key or a job changes
  them. Its disk is not bounded, and its runtime is always the engine's default, also where the profile has \`runtime\`.
- The image is \`berth-derived:HASH\`. The hash is of the image's id, the command, that network, those limits, \`dns\`,
  \`extraHosts\`, \`seccomp\` and \`apparmor\`. When one of them changes, another image is made, and new containers have
  it. A tenant can thus have at most one made for each image in \`images\`. To have packages updated, change the
  command, for example by a date in a comment.
- When the command does not end with 0, takes too long, or something in it is killed for memory, the worker removes
  what it made, and the job is refused with \`setup-failed\`. The next job tries again.
- \`berth image ls\` lists these images. Those that no sandbox uses are [removed](images.md#unused-images-are-removed).
- If the worker dies meanwhile, the next that needs the image waits until the command has ended or its time is over,
  and a few minutes more, and then runs it again.
- Behind an [engine proxy](deploy.md#the-engines-socket) such a profile does not start: its jobs are refused with
  \`sandbox-start-failed\`, in the proxy's words. Build the image by hand there, and name it in \`image\`.

## What an engine may not enforce

\`berth doctor engine\` names the fields that the engine or its kernel cannot enforce. An engine without AppArmor ignores
\`apparmor\`; a kernel that does not account for swap ignores \`limits.swapBytes\`.
The disk's limits need workspaces on a block device; cgroup v1 holds back only reads and writes that bypass the page
cache, and \`ioWeight\` needs a disk scheduler with weights. With \`gpus\` on an engine without a runtime
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
- **Without a restart.** Workers learn of a change at once. A worker that missed the message reads it within ten seconds.
- **Running jobs end as they began.** An idle sandbox whose profile has changed gets a fresh container before
  its next job. A busy one gets it when its jobs have ended. Files in the workspace stay.
- **Audited.** The gateway's audit and the layer's own history name the key or user that changed it. A history has the last 50 changes.
- **No lost update.** \`set --if-version N\` is refused when the layer was changed since.

Workers keep a copy of all live layers, so a job asks Redis for none of them.

## Variables

These set a field for every profile of one worker, unless the file or a live layer sets it.

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
  const rows = Object.entries(ceilings.shape).map(
    ([name, schema]) =>
      `| \`${name}\` | ${schema.def.defaultValue.toLocaleString("en")} | ${schema.description ?? ""} |`,
  );
  const page = `${intro}${fields.join("\n")}\n${afterFields}${rows.join("\n")}\n${outro}${variables.join("\n")}\n`;
  return wrappedMarkdown(page);
}

function shownDefault({ schema, name }: ProfileField): string {
  const { data } = schema.safeParse(undefined);
  if (data === undefined) return "";
  if (typeof data === "number" && /Bytes(Per(Hour|Second))?$/.test(name))
    return `\`${inUnits(data, sizeUnits)}\``;
  if (typeof data === "number" && name.endsWith("Ms")) return `\`${inUnits(data, timeUnits)}\``;
  return `\`${JSON.stringify(data).replaceAll('"', "")}\``;
}

const sizeUnits = { g: 1024 ** 3, m: 1024 ** 2, k: 1024 };
const timeUnits = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** Uses the largest unit in which the value is a whole number. */
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
    case "covered":
      return "only what these rules cover";
    case "subset":
      return "only some of these";
    case "added":
      return "add further ones; all hold";
    case "free":
      return "add and replace";
    case "operator":
      return "nothing";
  }
}

if (import.meta.main) process.stdout.write(profilePage());
