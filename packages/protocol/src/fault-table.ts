import { type CeilingName, ceilingTexts } from "./ceilings.ts";

/** For a job whose submission failed. Submit it again with this id: it runs once, even if the fleet has it already. */
export interface SubmittedJob {
  jobId?: string;
  /** `no`: the fleet does not have the job. `unknown`: it may have it, and may run it. */
  accepted?: "no" | "unknown";
}

/** The fields of each fault. They end up in logs: never payloads, output, environment or secrets. */
export interface FaultContexts {
  "engine-unreachable": { address: string; detail: string };
  "engine-timeout": { call: string; deadlineMs: number };
  "engine-refused": { call: string; status: number; detail: string };
  "engine-wedged": { failures: number; retryInMs: number };
  "image-missing": { image: string; detail: string };
  "runtime-missing": { runtime: string; available: string };
  "profile-unmet": { field: string; value: string; detail: string };
  "sandbox-start-failed": { sandboxKey: string; detail: string };
  "sandbox-stopped": { sandboxKey: string };
  "init-unresponsive": { sandboxKey: string; waitedMs: number };
  "init-protocol": { detail: string };
  "init-missing": { path: string };
  "init-foreign": { path: string; detail: string };
  fenced: { sandboxKey: string; epoch: number; highestEpoch: number };
  "workspace-unusable": { path: string; detail: string };
  "mount-refused": { mount: string; detail: string };
  "seccomp-unusable": { path: string; detail: string };
  "egress-unavailable": { detail: string };
  "tied-elsewhere": { sandboxKey: string; shared: string; host: string };
  "home-conflict": { sandboxKey: string; home: string; shared: string; host: string };
  "snapshot-unknown": { tenant: string; name: string };
  "snapshot-refused": { reason: SnapshotRefusal; detail: string };
  /** `output`: its end, for the tenant whose job is refused. */
  "setup-failed": { sandboxKey: string; how: string; wallMs: number; output: string };
  "operation-timeout": { operation: string; deadlineMs: number };
  "file-operation-failed": { operation: string; code: string; detail: string };
  aborted: { operation: string };
  "redis-unreachable": { address: string; detail: string } & SubmittedJob;
  "redis-unauthorized": { detail: string } & SubmittedJob;
  "redis-refused": { script: string; detail: string } & SubmittedJob;
  "redis-full": { script: string; detail: string } & SubmittedJob;
  "redis-unreplicated": { detail: string } & SubmittedJob;
  "redis-layout": { detail: string };
  "lease-lost": { sandboxKey: string; epoch: number; highestEpoch: number };
  "sandbox-full": { sandboxKey: string; waiting: number; limit: number };
  "fleet-full": { waiting: number; limit: number };
  "tenant-full": {
    tenant: string;
    ceiling: CeilingName;
    used: number;
    limit: number;
    /** For a daily ceiling: when the next day begins. */
    resetAtMs?: number | undefined;
  };
  "job-id-taken": { jobId: string; sandboxKey: string };
  "job-unknown": { jobId: string };
  "wrong-pool": { sandboxKey: string; pool: string; wanted: string };
  "unknown-tenant": { tenant: string };
  "not-granted": { what: "profile" | "pool" | "image" | "network" | "mount"; name: string; tenant: string };
  "not-allowed": { tenant: string; problems: readonly string[] };
  "secrets-unavailable": { tenant: string; detail: string };
  "secret-unreadable": { tenant: string; name: string; detail: string };
  "secret-refused": {
    tenant: string;
    name: string;
    reason: "absent" | "full" | "shared" | "many";
    detail: string;
  };
  "denied-by-rule": { tenant: string; problem: string };
  "tool-refused": { tool: string; problem: string };
  "invalid-tool": { tool: string; problems: readonly string[] };
  "approval-needed": { jobId: string; expiresMs: number };
  "approval-refused": { jobId: string; reason: string };
  "approval-expired": { jobId: string };
  "not-waiting-for-approval": { jobId: string; state: string };
  "sandbox-disabled": { kind: string; mode: string };
  "invalid-profile": { layer: string; problems: readonly string[] };
  "profile-changed": { layer: string; version: number; expected: number };
  "schedule-unreadable": { schedule: string; detail: string };
  "no-answer": { worker: string; waitedMs: number };
  "worker-id-taken": { worker: string; host: string; pid: string };
  "invalid-argument": { argument: string; problem: string };
  "invalid-job": { problems: readonly string[] };
  "invalid-schedule": { problems: readonly string[] };
  "not-redrivable": { jobId: string; reason: "not-found" | "unreadable" | "unfinished"; detail: string };
  "payload-missing": { jobId: string; detail: string };
  "payload-too-large": { bytes: number; limit: number };
  "artifact-elsewhere": { artifact: string; place: string; detail: string };
  "artifact-missing": { artifact: string; detail: string };
  "artifact-store-failed": { directory: string; detail: string };
}

/** Why a snapshot is not made, or nothing is made of it. */
export type SnapshotRefusal =
  | "exists"
  | "unreadable"
  | "no-space"
  | "too-long"
  | "no-workspace"
  | "read-only"
  | "shared"
  | "other-user"
  | "own-files"
  | "removed";

/** `tools`, `agent.NAME`, `team.TENANT` or `snapshot.NAME`. */
function sharedText(shared: string): string {
  const [kind, name = ""] = shared.split(".", 2);
  switch (kind) {
    case "tools":
      return "its tenant's tools";
    case "team":
      return `the files of its peer ${name}`;
    case "snapshot":
      return `the files of the snapshot ${name}`;
    default:
      return `its tenant's files of the agent ${name}`;
  }
}

export type FaultCode = keyof FaultContexts;

export interface FaultEntry<C extends FaultCode> {
  readonly message: (context: FaultContexts[C]) => string;
  readonly meaning: string;
  /** Whether the same call may succeed later without a change. */
  readonly retry: boolean;
  readonly operator: string;
}

export const faultTable: { readonly [C in FaultCode]: FaultEntry<C> } = {
  "engine-unreachable": {
    message: ({ address, detail }) => `no container engine answers at ${address} (${detail})`,
    meaning: "The connection to the container engine failed before it took the request.",
    retry: true,
    operator:
      "Start the engine, or point DOCKER_HOST at it. `npm run setup -- --check` names what is missing.",
  },
  "engine-timeout": {
    message: ({ call, deadlineMs }) => `the container engine did not answer ${call} within ${deadlineMs} ms`,
    meaning: "The engine took the request and did not answer before the call's deadline.",
    retry: true,
    operator: "Look at the engine's log and the host's disk and load; restart the engine if it hangs.",
  },
  "engine-refused": {
    message: ({ call, status, detail }) =>
      `the container engine refused ${call}: ${detail} (status ${status})`,
    meaning: "The engine answered with an error that has no code of its own here.",
    retry: false,
    operator: "Read the detail; it is the engine's own sentence.",
  },
  "engine-wedged": {
    message: ({ failures, retryInMs }) =>
      `the container engine failed ${failures} times in a row; the next try is in ${retryInMs} ms`,
    meaning: "The circuit breaker is open: calls fail at once instead of queueing behind a wedged engine.",
    retry: true,
    operator: "As for engine-timeout. The breaker closes by itself after one call succeeds.",
  },
  "image-missing": {
    message: ({ image, detail }) =>
      `the image ${image} is not on this host and could not be pulled (${detail})`,
    meaning: "The engine has no such image and the registry did not give it.",
    retry: false,
    operator:
      "Build it (`npm run setup` builds berth-sandbox:bookworm), pull it by hand, or correct the profile.",
  },
  "runtime-missing": {
    message: ({ runtime, available }) => `the engine has no runtime called ${runtime}; it has ${available}`,
    meaning: "The profile names an OCI runtime that is not registered with the engine.",
    retry: false,
    operator: "Register the runtime in the engine's daemon.json and restart it, or change the profile.",
  },
  "profile-unmet": {
    message: ({ field, value, detail }) =>
      `this host cannot give a sandbox what its profile asks for, ${field} ${value}: ${detail}`,
    meaning:
      "The engine refused the container for a field of its profile: a network or an AppArmor profile that it does not have, gpus, or a writable root that its storage driver cannot bound.",
    retry: false,
    operator:
      "Correct the field, or give the host what it names. `berth doctor engine` lists the fields that its engine cannot give.",
  },
  "sandbox-start-failed": {
    message: ({ sandboxKey, detail }) => `the sandbox ${sandboxKey} did not start: ${detail}`,
    meaning: "The container was created or started with an error, or ended before it could take a command.",
    retry: true,
    operator: "Read the detail. The image needs an `sh`; its limits must be ones the host can give.",
  },
  "sandbox-stopped": {
    message: ({ sandboxKey }) => `the sandbox ${sandboxKey} has been stopped`,
    meaning: "A sandbox was used after its stop().",
    retry: false,
    operator: "A mistake in the calling program; report it.",
  },
  "init-unresponsive": {
    message: ({ sandboxKey, waitedMs }) =>
      `process 1 of the sandbox ${sandboxKey} did not answer for ${waitedMs} ms`,
    meaning: "The container runs but its init does not answer. It is removed and a fresh one is started.",
    retry: true,
    operator: "If it happens often, look at the host's load and memory.",
  },
  "init-protocol": {
    message: ({ detail }) => `the sandbox's init broke the protocol: ${detail}`,
    meaning: "The sandbox's init sent bytes that break its protocol. The container is removed.",
    retry: true,
    operator: "Treat the sandbox as hostile; look at what its tenant ran.",
  },
  "init-missing": {
    message: ({ path }) => `there is no init binary at ${path}`,
    meaning: "init, process 1 of every sandbox, has not been built or is not at its path.",
    retry: false,
    operator: "Run `npm run setup`, or `make -C packages/init`.",
  },
  "init-foreign": {
    message: ({ path, detail }) =>
      `the init binary at ${path} does not run on the engine's machine: ${detail}`,
    meaning:
      "init, process 1 of every sandbox, was built for another processor architecture than the engine's.",
    retry: false,
    operator: "Build init on the engine's machine (`make -C packages/init`), or for its architecture.",
  },
  fenced: {
    message: ({ sandboxKey, epoch, highestEpoch }) =>
      `the sandbox ${sandboxKey} obeys epoch ${highestEpoch}, not ${epoch}`,
    meaning: "Another holder has taken the sandbox over. This one may no longer touch it.",
    retry: false,
    operator: "Nothing. A holder that was late stops with this fault.",
  },
  "workspace-unusable": {
    message: ({ path, detail }) => `the workspace directory ${path} cannot be used: ${detail}`,
    meaning: "The directory could not be made, owned or protected.",
    retry: false,
    operator: "Give the worker a workspaces root it can write to, on a disk with room.",
  },
  "mount-refused": {
    message: ({ mount, detail }) => `the mount ${mount} cannot be made: ${detail}`,
    meaning:
      "A profile mounts a directory that is not there, that this worker's host does not allow, or that lies beneath one which the profile gives to write.",
    retry: false,
    operator:
      "Name a directory above it in BERTH_MOUNTS of the worker, or correct `mountable` of the profile.",
  },
  "tied-elsewhere": {
    message: ({ shared, host }) =>
      `${sharedText(shared)} are on the host ${host}, so the sandbox can only run there`,
    meaning:
      "Under local storage each host has its own disk, and the sandbox needs files that another host has: the tenant's tools, an agent's directory, a peer's files, or the snapshot that it is a fork of.",
    retry: true,
    operator: "Start a worker on that host, or use shared storage (BERTH_STORAGE=shared).",
  },
  "home-conflict": {
    message: ({ home, shared, host }) =>
      `its workspace is on the host ${home}, and ${sharedText(shared)} are on the host ${host}`,
    meaning:
      "The sandbox has files on one host and now also needs files of another: its profile added tools or an agent's directory, a grant added a peer's files, or a job names a snapshot there.",
    retry: false,
    operator:
      "Move one of the two (docs/profiles.md, Homes), use shared storage, or take `toolsAccess` or `agentAccess` from the profile, or the peer from the grants (`berth tenant revoke`).",
  },
  "snapshot-unknown": {
    message: ({ tenant, name }) =>
      `${tenant} has no snapshot ${name}: it was removed, has expired, or was never made`,
    meaning:
      "A job restores a snapshot, or its sandbox is to start as a fork of one, and the tenant has none of that name.",
    retry: false,
    operator: "`berth snapshot ls TENANT` lists what there is.",
  },
  "snapshot-refused": {
    message: ({ detail }) => detail,
    meaning:
      "The workspace cannot be copied, or the sandbox cannot have the copy. `reason` names why: exists, unreadable, no-space, too-long, no-workspace, read-only, shared, other-user, own-files or removed.",
    retry: false,
    operator: "docs/snapshots.md explains each reason.",
  },
  "setup-failed": {
    message: ({ how, output }) =>
      `the sandbox could not be set up: its profile's set-up command ${how}${output === "" ? "" : `; its last output: ${output}`}`,
    meaning:
      "The command in `setup.command` of the profile did not end with 0 within its time. Nothing of the job ran. The next job tries again in a fresh container.",
    retry: false,
    operator:
      "Correct `setup.command` of the profile, or what it needs, such as a network (`setup.network`) or more time (`setup.timeoutMs`).",
  },
  "seccomp-unusable": {
    message: ({ path, detail }) => `the seccomp profile ${path} cannot be used: ${detail}`,
    meaning: "The profile's `seccomp` names a file that is not there, or that is no seccomp profile.",
    retry: false,
    operator:
      "Put the file on every worker's host, readable by the worker, or take the field out of the profile.",
  },
  "egress-unavailable": {
    message: ({ detail }) => `the profile's egress is not available on this worker: ${detail}`,
    meaning:
      "The profile allows hosts by `egress`, and either its network is not `none`, or the runtime carries no unix socket into the sandbox.",
    retry: false,
    operator:
      "Use network `none`, and a runtime that `berth doctor` shows with a unix link; or set `egressBy: fetch`, which needs no socket.",
  },
  "operation-timeout": {
    message: ({ operation, deadlineMs }) =>
      `${operation} did not end within ${deadlineMs} ms and was stopped`,
    meaning: "A file operation in the sandbox took longer than its deadline.",
    retry: true,
    operator: "Look at the size of the workspace and the host's disk.",
  },
  "file-operation-failed": {
    message: ({ operation, code, detail }) => `${operation} failed in the sandbox: ${code}: ${detail}`,
    meaning: "The sandbox reported an input/output error that no request caused.",
    retry: true,
    operator: "Look at the host's disk and the container's limits.",
  },
  "redis-unreachable": {
    message: ({ address, detail, ...job }) =>
      `Redis at ${address} does not answer (${detail})${acceptedText(job)}`,
    meaning:
      "The connection to Redis failed or is being made again. A submission that fails with it names the job's id.",
    retry: true,
    operator: "Start Redis or correct REDIS_URL. Work that was accepted is kept there and goes on by itself.",
  },
  "redis-unauthorized": {
    message: ({ detail, ...job }) =>
      `Redis refuses the user name or password in its address (${detail})${acceptedText(job)}`,
    meaning: "Redis asks for a password, or for another user name or password than the address has.",
    retry: false,
    operator:
      "Put the right ones into REDIS_URL: `redis://USER:PASSWORD@HOST:6379`, or `redis://:PASSWORD@HOST:6379` for the default user. Write special characters percent-encoded.",
  },
  "redis-refused": {
    message: ({ script, detail, ...job }) => `Redis refused ${script}: ${detail}${acceptedText(job)}`,
    meaning: "A Lua script failed, or its reply has an unexpected form.",
    retry: false,
    operator:
      "Look at Redis' disk, its eviction policy (it must be noeviction) and its version (7.0 or newer).",
  },
  "redis-full": {
    message: ({ script, detail, ...job }) =>
      `Redis has no memory left for ${script}: ${detail}${acceptedText(job)}`,
    meaning:
      "Redis has reached its maxmemory, or 85 % of it, from which on new jobs are refused so that the others can end. It did not make the change that the message names.",
    retry: true,
    operator:
      "Raise maxmemory (or fullAtPercent in the fleet's settings), or let jobs end and their records expire. Producers should wait; running jobs go on, and their results are published.",
  },
  "redis-unreplicated": {
    message: ({ detail, ...job }) =>
      `Redis' replicas did not acknowledge a step (${detail})${acceptedText(job)}`,
    meaning:
      "With BERTH_ACCEPT=replicated a step counts once every connected replica has it, and at least BERTH_REPLICAS. They did not acknowledge it within a second. The primary may have made it all the same; making it again is safe.",
    retry: true,
    operator:
      "Start the replicas that are away, and look at the network between them and their primary (INFO replication). After a failover the new primary accepts once it has BERTH_REPLICAS replicas: give each primary one more than that, or set BERTH_REPLICAS=0 for all programs, so that a primary without replicas accepts alone. A replica that is frozen or cut off counts as connected until the primary's repl-timeout.",
  },
  "redis-layout": {
    message: ({ detail }) => `Redis has records that this version of Berth cannot read: ${detail}`,
    meaning:
      "Redis was used by another version of Berth, whose keys have other names. Nothing in it was read or changed.",
    retry: false,
    operator:
      "Let the jobs end with the version that made them, and stop it (docs/operations.md, Upgrade). Then start this version on a Redis or a database without those records.",
  },
  "lease-lost": {
    message: ({ sandboxKey, epoch, highestEpoch }) =>
      `the lease of ${sandboxKey} is at epoch ${highestEpoch}; epoch ${epoch} may no longer publish for it`,
    meaning: "Another worker has taken the sandbox over.",
    retry: false,
    operator: "Nothing. A worker that was late stops with this fault.",
  },
  "sandbox-full": {
    message: ({ sandboxKey, waiting, limit }) =>
      `the sandbox ${sandboxKey} has ${waiting} jobs waiting, and its limit is ${limit}`,
    meaning: "The job was not accepted: too many jobs of the same sandbox wait already.",
    retry: true,
    operator: "Submit more slowly, or raise maxWaitingPerSandbox in the fleet's settings.",
  },
  "fleet-full": {
    message: ({ waiting, limit }) => `the fleet has ${waiting} unfinished jobs, and its limit is ${limit}`,
    meaning: "The job was not accepted: too many of all tenants' jobs wait already.",
    retry: true,
    operator: "Add workers, submit more slowly, or raise maxWaitingInFleet in the fleet's settings.",
  },
  "tenant-full": {
    message: ({ tenant, ceiling, used, limit, resetAtMs }) => {
      const { what, advice } = ceilingTexts[ceiling];
      const reset = resetAtMs === undefined ? "" : `, at ${new Date(resetAtMs).toISOString()}`;
      return `${tenant} has ${used} ${what}, and its ceiling ${ceiling} is ${limit}: ${advice}${reset}`;
    },
    meaning:
      "Nothing was accepted: the tenant is at its ceiling. `context.ceiling` names the ceiling, `context.limit` its value.",
    retry: true,
    operator:
      "Nothing, if the tenant can wait. Otherwise raise the ceiling: `berth profile set tenant.ID ceilings.NAME=VALUE`; docs/profiles.md lists them.",
  },
  "job-id-taken": {
    message: ({ jobId, sandboxKey }) =>
      `the job id ${jobId} was used before, by another job of the sandbox ${sandboxKey}`,
    meaning:
      "The same id stands for the same job for a day; this one belongs to a job of another sandbox, or to one that asks for something else.",
    retry: false,
    operator:
      "A mistake in the caller: give each job an id of its own. Only the very same job may be submitted again.",
  },
  "job-unknown": {
    message: ({ jobId }) => `Redis does not know the job ${jobId} any more; its result cannot arrive`,
    meaning:
      "A client waited for the job's end, looked for its record twice, and Redis had none: Redis lost its last writes or all of them, or the job ended more than a day ago.",
    retry: false,
    operator:
      "Find out whether Redis was restored, emptied or failed over. The command may have run: look before you submit it again.",
  },
  "wrong-pool": {
    message: ({ sandboxKey, pool, wanted }) =>
      `the sandbox ${sandboxKey} belongs to the pool ${pool}, not to ${wanted}`,
    meaning: "A sandbox's first job chose its pool. One sandbox cannot be in two.",
    retry: false,
    operator:
      "Use the same pool for all jobs of a sandbox, or give those of another pool a scope of their own.",
  },
  "not-granted": {
    message: ({ what, name, tenant }) => `the ${what} ${name} is not available to the tenant ${tenant}`,
    meaning:
      "The tenant was not granted the profile or pool, or there is no such profile. Or its profile does not list the image, network or mount that it chose. The message to a tenant does not name which.",
    retry: false,
    operator:
      "Grant it (`berth tenant grant TENANT --profile NAME --pool NAME`). A profile must also be in the configuration file of every worker of the pool, or be live (`berth profile get profile.NAME`). What may be chosen is in its `images`, `networks` and `mountable`.",
  },
  "unknown-tenant": {
    message: ({ tenant }) => `no tenant is known whose name became the id ${tenant}`,
    meaning:
      "Ids that end in `--` and 26 letters and digits belong to tenants whose names are no ids themselves. Such an id names a tenant that is there; it never makes one.",
    retry: false,
    operator:
      "Give the tenant's own name, such as an e-mail address. Berth makes the id from it, and shows both from then on.",
  },
  "secrets-unavailable": {
    message: ({ detail }) => detail,
    meaning: "This program has no key to seal or open secrets with. Nothing was sent in clear instead.",
    retry: false,
    operator:
      "Give the workers, the gateway and every program that submits such jobs the same BERTH_SECRETS_KEY or BERTH_SECRETS_KEY_FILE; `openssl rand -base64 32` makes a key.",
  },
  "secret-unreadable": {
    message: ({ tenant, name, detail }) => `the secret ${name} of ${tenant} cannot be opened: ${detail}`,
    meaning:
      "No configured key opens the sealed value, or it was changed or belongs to something else. The job was not run without it.",
    retry: false,
    operator:
      "Give this worker the key that sealed it, behind the present one. If that key is lost, set the secret again (`berth secret set`).",
  },
  "secret-refused": {
    message: ({ detail }) => detail,
    meaning:
      "There is no secret of that name to rotate (`absent`), the tenant has as many as it may have (`full`), a job in the sandbox that all tenants share brings its own (`shared`), or the secrets of the sandbox's running jobs are more than can be masked together (`many`).",
    retry: false,
    operator: "`berth secret ls TENANT` lists the names; `berth secret rm` removes one.",
  },
  "not-allowed": {
    message: ({ tenant, problems }) =>
      `the job asks for more than ${tenant} may have: ${problems.join("; ")}`,
    meaning:
      "The job's `settings` would loosen what its profile, its tenant or its agent allows. `context.problems` names every field. Nothing of it ran.",
    retry: false,
    operator: "Submit it with less, or let the tenant have more (`berth profile set`); see docs/profiles.md.",
  },
  "denied-by-rule": {
    message: ({ problem }) => `${problem} by the rules of its profile`,
    meaning:
      "A rule of the job's profile, tenant, agent or key forbids its kind, a path or a command. Nothing of it ran.",
    retry: false,
    operator: "Submit something else, or change the rules (`berth profile get`); see docs/policy.md.",
  },
  "tool-refused": {
    message: ({ tool, problem }) => `the tool ${tool}: ${problem}`,
    meaning:
      "There is no custom tool of that name for the job's tenant and agent, its arguments do not fit, or it runs under another profile. Nothing of the job ran.",
    retry: false,
    operator: "`berth tool get NAME` shows what the tool takes and who may use it; see docs/tools.md.",
  },
  "invalid-tool": {
    message: ({ tool, problems }) => `the tool ${tool} is invalid: ${problems.join("; ")}`,
    meaning:
      "The definition of a custom tool is not valid, or is not at the version that was expected. `context.problems` names every problem. Nothing was changed.",
    retry: false,
    operator: "A mistake in the definition; docs/tools.md has its fields.",
  },
  "approval-needed": {
    message: ({ expiresMs }) =>
      `it waits for an approval, for ${Math.round(expiresMs / 1_000)} s at most; an administrator approves it with \`berth approve\``,
    meaning:
      "The job matches a rule's `approval`. Nothing of it has run. It runs when an administrator approves it.",
    retry: true,
    operator: "`berth approvals` lists what waits; `berth approve JOB:DIGEST` or `berth refuse JOB` decides.",
  },
  "approval-refused": {
    message: ({ reason }) => `an administrator refused it${reason === "" ? "" : `: ${reason}`}`,
    meaning: "The job needed an approval and an administrator refused it. Nothing of it ran.",
    retry: false,
    operator: "Submit something else.",
  },
  "approval-expired": {
    message: () => "it was not approved in time",
    meaning:
      "The job needed an approval, and no administrator decided before the rule's `expiresMs`. Nothing of it ran.",
    retry: false,
    operator: "Submit it again, and approve it in time; a webhook can notify you (`BERTH_APPROVAL_WEBHOOK`).",
  },
  "not-waiting-for-approval": {
    message: ({ jobId, state }) =>
      state === "unknown"
        ? `no approval was asked for the job ${jobId}`
        : state === "changed"
          ? `the job ${jobId} would now run something else than what was shown; look at it again with \`berth approvals show ${jobId}\``
          : `the job ${jobId} no longer waits for an approval: it is ${state}`,
    meaning:
      "The job does not need an approval, its approval expired, another administrator has decided already, or it would run something else than what the administrator saw (`state` is `changed`).",
    retry: false,
    operator: "`berth approvals` lists what waits.",
  },
  "sandbox-disabled": {
    message: ({ kind, mode }) =>
      `/${kind} is disabled in this execution context — ${mode === "off" ? "sandboxes are switched off" : "the agents main and default have no sandbox"}, and nothing runs outside of one`,
    meaning: "The profile's `mode` leaves the job without a sandbox. Nothing of it ran.",
    retry: false,
    operator: "Adapt the plan, or switch the mode (`berth profile set LAYER mode=all`).",
  },
  "invalid-profile": {
    message: ({ layer, problems }) => `the profile layer ${layer} is invalid: ${problems.join("; ")}`,
    meaning:
      "The settings of a layer are not valid, or are ones that this layer may not set. `context.problems` names every problem. Nothing was changed.",
    retry: false,
    operator: "A mistake in the settings; the message lists what is allowed.",
  },
  "profile-changed": {
    message: ({ layer, version, expected }) =>
      `the profile layer ${layer} is at version ${version}, not at ${expected}`,
    meaning: "The layer was changed since its version was read. Nothing was changed.",
    retry: false,
    operator: "Read the layer again, and make the change to what it is now.",
  },
  "schedule-unreadable": {
    message: ({ schedule, detail }) => `the schedule ${schedule} cannot be read: ${detail}`,
    meaning:
      "This version of Berth does not understand the stored schedule, probably because a newer version wrote it. The schedule stays as it is.",
    retry: true,
    operator:
      "Finish the upgrade: a worker of the newer version runs the schedule. Otherwise remove it and create it again.",
  },
  "no-answer": {
    message: ({ worker, waitedMs }) => `the worker ${worker} did not answer within ${waitedMs} ms`,
    meaning: "The worker did not answer a message.",
    retry: true,
    operator: "Check that the worker runs, and that it uses the same Redis.",
  },
  "worker-id-taken": {
    message: ({ worker, host, pid }) => `the worker id ${worker} is in use by process ${pid} on ${host}`,
    meaning:
      "A worker was started with the id of one that runs and answers. It ended without touching anything.",
    retry: true,
    operator: "Give each worker a BERTH_WORKER_ID of its own, or end the other one first.",
  },
  "invalid-argument": {
    message: ({ argument, problem }) => `${argument} is not valid: ${problem}`,
    meaning: "A call was given a value that cannot be one. Nothing was sent.",
    retry: false,
    operator: "Correct the call; the message lists what is allowed.",
  },
  "invalid-job": {
    message: ({ problems }) => `invalid job: ${problems.join("; ")}`,
    meaning: "The order is not a valid job. `context.problems` names every problem. Nothing was sent.",
    retry: false,
    operator: "Correct the call; the message lists what is allowed.",
  },
  "invalid-schedule": {
    message: ({ problems }) => `invalid schedule: ${problems.join("; ")}`,
    meaning:
      "The schedule or its job is not valid. `context.problems` names every problem. Nothing was stored.",
    retry: false,
    operator: "Correct the call; the message lists what is allowed.",
  },
  "not-redrivable": {
    message: ({ detail }) => detail,
    meaning:
      "No record of the job is kept (`not-found`), it cannot be parsed (`unreadable`), or it has not ended (`unfinished`).",
    retry: false,
    operator: "`berth dead ls` lists the dead letters. One that cannot be parsed can only be removed.",
  },
  "payload-missing": {
    message: ({ jobId, detail }) => `the staged request of the job ${jobId} cannot be used: ${detail}`,
    meaning: "A request too large for the queue was put beside it, and is gone or is not what was put there.",
    retry: false,
    operator:
      "Submit the job again under a new id. If it happens often, look at Redis' eviction policy (it must be noeviction).",
  },
  "payload-too-large": {
    message: ({ bytes, limit }) => `the job's request has ${bytes} bytes; at most ${limit} can be sent`,
    meaning: "The request is larger than what may be put beside the queue.",
    retry: false,
    operator: "Send the content in several jobs, or let the job fetch it from where it is.",
  },
  "artifact-elsewhere": {
    message: ({ artifact, place, detail }) =>
      `the bytes of the artifact ${artifact} are in the artifact directory ${place}, which cannot be seen from here (${detail})`,
    meaning:
      "A larger artifact's bytes are in a directory of the workers', and this process has another one or none.",
    retry: false,
    operator:
      "Give this process the workers' artifact directory (the one with that id in its `place-id` file), or put all of them on shared storage.",
  },
  "artifact-missing": {
    message: ({ artifact, detail }) => `the bytes of the artifact ${artifact} are gone: ${detail}`,
    meaning: "The artifact is known and not expired, but its bytes are not where they were put.",
    retry: false,
    operator:
      "Find the program that removes files from the artifact directory or keys from Redis; only Berth's sweep may.",
  },
  "artifact-store-failed": {
    message: ({ directory, detail }) => `the artifact directory ${directory} cannot be used: ${detail}`,
    meaning: "Writing, reading or removing an artifact's bytes failed.",
    retry: true,
    operator:
      "Look at the room on its disk and at who owns it. Jobs still run, and their results list the files that were not kept.",
  },
  aborted: {
    message: ({ operation }) => `${operation} was aborted by its caller`,
    meaning: "The AbortSignal given with the call fired.",
    retry: false,
    operator: "Nothing.",
  },
};

function acceptedText({ jobId, accepted }: SubmittedJob): string {
  if (jobId === undefined) return "";
  if (accepted === "no") return `; the job ${jobId} was not accepted`;
  return `; the job ${jobId} may have been accepted: submit it again with the same id, and it runs once`;
}

export const faultCodes = Object.keys(faultTable) as FaultCode[];
