import type { Command } from "./command.ts";

/** Commands are imported on first use: importing all of them takes longer than most commands run. */
type Load = () => Promise<Command>;

export interface Section {
  readonly title: string;
  readonly commands: Readonly<Record<string, Load>>;
}

/** Every command, in the order of the help. */
export const sections: readonly Section[] = [
  {
    title: "Run things",
    commands: {
      exec: async () => (await import("./commands/exec.ts")).exec,
      "batch run": async () => (await import("./commands/batch-run.ts")).batchRun,
      "batch status": async () => (await import("./commands/batch-status.ts")).batchStatus,
      "batch cancel": async () => (await import("./commands/batch-cancel.ts")).batchCancel,
    },
  },
  {
    title: "Agents",
    commands: {
      "tool run": async () => (await import("./commands/tool-run.ts")).toolRun,
      "tool ls": async () => (await import("./commands/tool-ls.ts")).toolLs,
      "tool get": async () => (await import("./commands/tool-get.ts")).toolGet,
      "tool set": async () => (await import("./commands/tool-set.ts")).toolSet,
      "tool rm": async () => (await import("./commands/tool-rm.ts")).toolRm,
      mcp: async () => (await import("./commands/mcp.ts")).mcp,
    },
  },
  {
    title: "Files of a tenant",
    commands: {
      fetch: async () => (await import("./commands/fetch.ts")).fetchUrl,
      write: async () => (await import("./commands/write.ts")).write,
      read: async () => (await import("./commands/read.ts")).read,
      ls: async () => (await import("./commands/ls.ts")).ls,
      edit: async () => (await import("./commands/edit.ts")).edit,
      grep: async () => (await import("./commands/grep.ts")).grep,
      glob: async () => (await import("./commands/glob.ts")).glob,
      cp: async () => (await import("./commands/cp.ts")).cp,
      "tools ls": async () => (await import("./commands/tools-ls.ts")).toolsLs,
    },
  },
  {
    title: "Snapshots",
    commands: {
      "snapshot create": async () => (await import("./commands/snapshot-create.ts")).snapshotCreate,
      "snapshot ls": async () => (await import("./commands/snapshot-ls.ts")).snapshotLs,
      "snapshot restore": async () => (await import("./commands/snapshot-restore.ts")).snapshotRestore,
      "snapshot fork": async () => (await import("./commands/snapshot-fork.ts")).snapshotFork,
      "snapshot rm": async () => (await import("./commands/snapshot-rm.ts")).snapshotRm,
    },
  },
  {
    title: "Jobs",
    commands: {
      ps: async () => (await import("./commands/ps.ts")).ps,
      logs: async () => (await import("./commands/logs.ts")).logs,
      why: async () => (await import("./commands/why.ts")).why,
      cancel: async () => (await import("./commands/cancel.ts")).cancel,
    },
  },
  {
    title: "Operating a fleet",
    commands: {
      fleet: async () => (await import("./commands/fleet.ts")).fleet,
      drain: async () => (await import("./commands/drain.ts")).drain,
      "tenant pause": async () => (await import("./commands/tenant-pause.ts")).tenantPause,
      "tenant resume": async () => (await import("./commands/tenant-resume.ts")).tenantResume,
      stop: async () => (await import("./commands/stop.ts")).stop,
      "tenant destroy": async () => (await import("./commands/tenant-destroy.ts")).tenantDestroy,
      "tenant grant": async () => (await import("./commands/tenant-grant.ts")).tenantGrant,
      "tenant revoke": async () => (await import("./commands/tenant-revoke.ts")).tenantRevoke,
      usage: async () => (await import("./commands/usage.ts")).usage,
      "tenant usage": async () => (await import("./commands/tenant-usage.ts")).tenantUsage,
      "secret set": async () => (await import("./commands/secret-set.ts")).secretSet,
      "secret rotate": async () => (await import("./commands/secret-rotate.ts")).secretRotate,
      "secret ls": async () => (await import("./commands/secret-ls.ts")).secretLs,
      "secret rm": async () => (await import("./commands/secret-rm.ts")).secretRm,
      "secret reencrypt": async () => (await import("./commands/secret-reencrypt.ts")).secretReencrypt,
      "profile get": async () => (await import("./commands/profile-get.ts")).profileGet,
      "profile set": async () => (await import("./commands/profile-set.ts")).profileSet,
      "profile diff": async () => (await import("./commands/profile-diff.ts")).profileDiff,
      "profile history": async () => (await import("./commands/profile-history.ts")).profileHistory,
      "profile rollback": async () => (await import("./commands/profile-rollback.ts")).profileRollback,
      "profile rm": async () => (await import("./commands/profile-rm.ts")).profileRm,
      "schedule put": async () => (await import("./commands/schedule-put.ts")).schedulePut,
      "schedule ls": async () => (await import("./commands/schedule-ls.ts")).scheduleLs,
      "schedule pause": async () => (await import("./commands/schedule-pause.ts")).schedulePause,
      "schedule resume": async () => (await import("./commands/schedule-resume.ts")).scheduleResume,
      "schedule rm": async () => (await import("./commands/schedule-rm.ts")).scheduleRm,
      approvals: async () => (await import("./commands/approvals.ts")).approvals,
      "approvals show": async () => (await import("./commands/approvals-show.ts")).approvalsShow,
      approve: async () => (await import("./commands/approve.ts")).approve,
      refuse: async () => (await import("./commands/refuse.ts")).refuse,
      "dead ls": async () => (await import("./commands/dead-ls.ts")).deadLs,
      "dead redrive": async () => (await import("./commands/dead-redrive.ts")).deadRedrive,
      "dead rm": async () => (await import("./commands/dead-rm.ts")).deadRm,
      "key create": async () => (await import("./commands/key-create.ts")).keyCreate,
      "key ls": async () => (await import("./commands/key-ls.ts")).keyLs,
      "key revoke": async () => (await import("./commands/key-revoke.ts")).keyRevoke,
    },
  },
  {
    title: "This machine",
    commands: {
      "image ls": async () => (await import("./commands/image-ls.ts")).imageLs,
      "image pull": async () => (await import("./commands/image-pull.ts")).imagePull,
      "image prune": async () => (await import("./commands/image-prune.ts")).imagePrune,
      doctor: async () => (await import("./commands/doctor.ts")).doctor,
      dev: async () => (await import("./commands/dev.ts")).dev,
      tour: async () => (await import("./commands/tour.ts")).tour,
      completion: async () => (await import("./commands/completion.ts")).completion,
      version: async () => (await import("./commands/version.ts")).version,
    },
  },
];

export const commandNames: readonly string[] = sections.flatMap(({ commands }) => Object.keys(commands));

export async function loadCommand(name: string): Promise<Command | undefined> {
  for (const { commands } of sections) if (Object.hasOwn(commands, name)) return commands[name]?.();
  return undefined;
}

export function loadAll(): Promise<Command[]> {
  return Promise.all(sections.flatMap(({ commands }) => Object.values(commands).map((load) => load())));
}
