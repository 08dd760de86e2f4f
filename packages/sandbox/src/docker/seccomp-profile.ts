/**
 * The system calls of a sandbox, instead of the engine's default, so that every engine version filters alike. The profile allows what
 * programs without capabilities need. init's own filter (packages/init/c/seccomp.c) narrows some of these calls by argument. A call that
 * is not listed fails with EPERM, or with ENOSYS if it is newer than the runtime's library.
 */

const processes = [
  ...["arch_prctl", "capget", "capset", "execve", "execveat", "exit", "exit_group", "fork", "vfork"],
  ...["getcpu", "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp", "getpid", "getppid"],
  ...["getpriority", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "gettid", "getuid"],
  ...["ioprio_get", "ioprio_set", "kill", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64"],
  ...["process_mrelease", "ptrace"],
  ...["restart_syscall", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity"],
  ...["sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity"],
  ...["sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "set_tid_address", "setfsgid"],
  ...["setfsuid", "setgid", "setgroups", "setpgid", "setpriority", "setregid", "setresgid", "setresuid"],
  ...["setreuid", "setrlimit", "setsid", "setuid", "sysinfo", "tgkill", "times", "tkill", "umask", "uname"],
  ...["wait4", "waitid"],
] as const;

const signals = [
  ...["alarm", "pause", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo"],
  ...["rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sigaltstack", "signalfd"],
  ...["signalfd4"],
] as const;

const memory = [
  ...["brk", "madvise", "membarrier", "memfd_create", "mincore", "mlock", "mlock2", "mlockall", "mmap"],
  ...["mprotect", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free"],
  ...["pkey_mprotect", "map_shadow_stack", "remap_file_pages"],
] as const;

const threads = [
  ...["futex", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "get_robust_list", "rseq"],
  ...["set_robust_list", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "seccomp"],
] as const;

const clocks = [
  ...["adjtimex", "clock_adjtime", "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer"],
  ...["gettimeofday", "nanosleep", "setitimer", "time", "timer_create", "timer_delete", "timer_getoverrun"],
  ...["timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime"],
] as const;

const descriptors = [
  ...["close", "close_range", "copy_file_range", "dup", "dup2", "dup3", "epoll_create", "epoll_create1"],
  ...["epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "fcntl", "flock"],
  ...["inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "io_cancel", "io_destroy"],
  ...["io_getevents", "io_pgetevents", "io_setup", "io_submit", "ioctl", "lseek", "pipe", "pipe2", "poll"],
  ...["ppoll", "pread64", "preadv", "preadv2", "pselect6", "pwrite64", "pwritev", "pwritev2", "read"],
  ...["readahead", "readv", "select", "sendfile", "splice", "tee", "vmsplice", "write", "writev"],
] as const;

const files = [
  ...["access", "cachestat", "chdir", "chmod", "chown", "creat", "faccessat", "faccessat2", "fadvise64"],
  ...["fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "fdatasync"],
  ...["fgetxattr", "flistxattr", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate"],
  ...["futimesat", "getcwd", "getdents", "getdents64", "getxattr", "lchown", "lgetxattr", "link", "linkat"],
  ...["listxattr", "llistxattr", "lremovexattr", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod"],
  ...["mknodat", "newfstatat", "open", "openat", "openat2", "readlink", "readlinkat", "removexattr"],
  ...["rename", "renameat", "renameat2", "rmdir", "setxattr", "stat", "statfs", "statx", "symlink"],
  ...["symlinkat", "sync", "sync_file_range", "syncfs", "truncate", "unlink", "unlinkat", "utime"],
  ...["utimensat", "utimes", "getrandom"],
] as const;

const network = [
  ...["accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen"],
  ...["recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown"],
  ...["socketpair"],
] as const;

/** Between processes of one sandbox: it has an ipc namespace of its own. */
const interProcess = [
  ...["mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink", "msgctl"],
  ...["msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat", "shmctl", "shmdt"],
  ...["shmget"],
] as const;

interface Rule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  readonly errnoRet?: number;
  readonly args?: readonly {
    readonly index: number;
    readonly value: number;
    readonly valueTwo?: number;
    readonly op: "SCMP_CMP_EQ" | "SCMP_CMP_NE" | "SCMP_CMP_MASKED_EQ";
  }[];
}

function allow(names: readonly string[], ...args: NonNullable<Rule["args"]>): Rule {
  return { names, action: "SCMP_ACT_ALLOW", ...(args.length > 0 ? { args } : {}) };
}

/** CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID and NET. */
const namespaceFlags = 0x7e020000;
const noSuchCall = 38;
/** PER_LINUX, the flags 0x8 and UNAME26, both, and the value that only asks for the present personality. */
const personalities = [0, 0x8, 0x20000, 0x20008, 0xffffffff];
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. */
const families = [1, 2, 10, 16];

const profile = {
  defaultAction: "SCMP_ACT_ERRNO",
  defaultErrnoRet: 1,
  // Calls of an architecture that is not listed would kill the process. init's filter answers foreign calls with ENOSYS.
  archMap: [
    {
      architecture: "SCMP_ARCH_X86_64",
      subArchitectures: ["SCMP_ARCH_X86", "SCMP_ARCH_X32"],
    },
    { architecture: "SCMP_ARCH_AARCH64", subArchitectures: ["SCMP_ARCH_ARM"] },
  ],
  syscalls: [
    allow([
      ...[...processes, ...signals, ...memory, ...threads, ...clocks],
      ...[...descriptors, ...files, ...network, ...interProcess],
    ]),
    ...families.map((value) => allow(["socket"], { index: 0, value, op: "SCMP_CMP_EQ" })),
    ...personalities.map((value) => allow(["personality"], { index: 0, value, op: "SCMP_CMP_EQ" })),
    allow(["clone"], { index: 0, value: namespaceFlags, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }),
    // The flags of clone3 are in memory, where a filter cannot read them. Libraries fall back to clone.
    { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: noSuchCall },
  ] satisfies Rule[],
};

/** As the engine takes it in SecurityOpt. */
export const seccompProfile = JSON.stringify(profile);
