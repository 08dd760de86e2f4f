#include "seccomp.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* The kernel's interface, written out because musl comes without the kernel's headers. */
struct instruction {
    uint16_t code;
    uint8_t yes, no;
    uint32_t value;
};
struct program {
    unsigned short length;
    const struct instruction *instructions;
};
struct call {
    int32_t number;
    uint32_t architecture;
    uint64_t at;
    uint64_t arguments[6];
};
enum { OP_LOAD = 0x20, OP_IF_EQUAL = 0x15, OP_IF_AT_LEAST = 0x35, OP_IF_ANY = 0x45, OP_RETURN = 0x06 };
enum { MODE_FILTER = 2, ANSWER_ALLOW = 0x7fff0000, ANSWER_ERRNO = 0x00050000 };
#if defined(__x86_64__)
#define NATIVE_ARCH 0xc000003eu
#elif defined(__aarch64__)
#define NATIVE_ARCH 0xc00000b7u
#endif

/* The same on every architecture; older headers do not know them. */
enum { IO_URING_SETUP = 425, IO_URING_ENTER = 426, IO_URING_REGISTER = 427 };
enum { CLONE3 = 435, CLOSE_RANGE = 436, FILE_SETATTR = 469 };
/* These change a file's project id, and whether its children inherit it: so they decide whose quota the file counts against. */
enum { FS_SET_XATTR = 0x401c5820, FS_SET_FLAGS = 0x40086602 };
/* A btrfs subvolume does not count against the quota of the one that it is made in. Two calls, each in two versions. */
enum { BTRFS_SNAP = 0x50009401, BTRFS_SUBVOL = 0x5000940e, BTRFS_SNAP_2 = 0x50009417, BTRFS_SUBVOL_2 = 0x50009418 };
/* TIOCSTI and TIOCLINUX put input into a terminal that another process reads. */
enum { TTY_TYPE = 0x5412, TTY_LINUX = 0x541c };
enum { IOPRIO_WHO_PROCESS = 1, UNSHARE_RANGE = 2 };
/* The first call number of the x32 variant of x86-64. */
enum { X32_FIRST = 0x40000000 };

#define LOAD(field) {OP_LOAD, 0, 0, (uint32_t)offsetof(struct call, field)}
#define LOAD_HIGH(field) {OP_LOAD, 0, 0, (uint32_t)(offsetof(struct call, field) + 4)}
#define ALLOW {OP_RETURN, 0, 0, ANSWER_ALLOW}
#define REFUSE(error) {OP_RETURN, 0, 0, (uint32_t)ANSWER_ERRNO | (uint32_t)(error)}
/* A test of the value that was loaded last, and the instructions that are skipped when it fails. */
#define COUNT(...) (sizeof((struct instruction[]){__VA_ARGS__}) / sizeof(struct instruction))
#define IF_EQUAL(what, ...) {OP_IF_EQUAL, 0, COUNT(__VA_ARGS__), (uint32_t)(what)}, __VA_ARGS__
#define IF_AT_LEAST(what, ...) {OP_IF_AT_LEAST, 0, COUNT(__VA_ARGS__), (uint32_t)(what)}, __VA_ARGS__
#define UNLESS_EQUAL(what, ...) {OP_IF_EQUAL, COUNT(__VA_ARGS__), 0, (uint32_t)(what)}, __VA_ARGS__
#define IF_ANY(bits, ...) {OP_IF_ANY, 0, COUNT(__VA_ARGS__), (uint32_t)(bits)}, __VA_ARGS__
#define UNLESS_ANY(bits, ...) {OP_IF_ANY, COUNT(__VA_ARGS__), 0, (uint32_t)(bits)}, __VA_ARGS__
/* A call that names a process: 0 is the caller itself. */
#define ONLY_ITSELF(field) LOAD(field), IF_EQUAL(0, ALLOW), REFUSE(EPERM)
#define SOCKET_FAMILIES \
    LOAD(arguments[0]), IF_EQUAL(AF_UNIX, ALLOW), IF_EQUAL(AF_INET, ALLOW), IF_EQUAL(AF_INET6, ALLOW), \
        IF_EQUAL(AF_NETLINK, ALLOW), REFUSE(EAFNOSUPPORT)

/* Each call's rule ends in an answer. So at the next rule the call's number is still the value that was loaded last. */
static const struct instruction filter[] = {
#ifdef NATIVE_ARCH
    /* Another architecture's calls (int 0x80) would pass a filter by numbers. */
    LOAD(architecture),
    UNLESS_EQUAL(NATIVE_ARCH, REFUSE(ENOSYS)),
    LOAD(number),
    IF_AT_LEAST(X32_FIRST, REFUSE(ENOSYS)),
    /* io_uring performs operations without system calls, so a filter does not see them. */
    IF_EQUAL(IO_URING_SETUP, REFUSE(ENOSYS)),
    IF_EQUAL(IO_URING_ENTER, REFUSE(ENOSYS)),
    IF_EQUAL(IO_URING_REGISTER, REFUSE(ENOSYS)),
    /* Only the families that a network namespace confines: AF_VSOCK reaches the hypervisor whatever the network mode, AF_ALG
     * and the rest are kernel code that no program here needs. */
    IF_EQUAL(SYS_socket, SOCKET_FAMILIES),
    IF_EQUAL(SYS_socketpair, SOCKET_FAMILIES),
    /* The quota cannot see the open files of an undumpable process. The call succeeds and changes nothing. */
    IF_EQUAL(SYS_prctl, LOAD(arguments[0]), UNLESS_EQUAL(PR_SET_DUMPABLE, ALLOW), LOAD(arguments[1]),
             UNLESS_EQUAL(0, ALLOW), REFUSE(0)),
    /* The quota reads one descriptor table of each process, so no thread may have a table of its own. The flags of clone3 are in memory,
     * where a filter cannot read them; libraries fall back to clone. */
    IF_EQUAL(SYS_clone, LOAD(arguments[0]), IF_ANY(CLONE_THREAD, UNLESS_ANY(CLONE_FILES, REFUSE(EINVAL))), ALLOW),
    IF_EQUAL(CLONE3, REFUSE(ENOSYS)),
    IF_EQUAL(SYS_unshare, LOAD(arguments[0]), IF_ANY(CLONE_FILES, REFUSE(EINVAL)), ALLOW),
    IF_EQUAL(CLOSE_RANGE, LOAD(arguments[2]), IF_ANY(UNSHARE_RANGE, REFUSE(EINVAL)), ALLOW),
    IF_EQUAL(FILE_SETATTR, REFUSE(ENOSYS)),
    /* The kernel reads only the low half of the request. */
    IF_EQUAL(SYS_ioctl, LOAD(arguments[1]), IF_EQUAL(FS_SET_XATTR, REFUSE(EPERM)), IF_EQUAL(FS_SET_FLAGS, REFUSE(EPERM)),
             IF_EQUAL(TTY_TYPE, REFUSE(EPERM)), IF_EQUAL(TTY_LINUX, REFUSE(EPERM)), IF_EQUAL(BTRFS_SNAP, REFUSE(EPERM)),
             IF_EQUAL(BTRFS_SUBVOL, REFUSE(EPERM)), IF_EQUAL(BTRFS_SNAP_2, REFUSE(EPERM)),
             IF_EQUAL(BTRFS_SUBVOL_2, REFUSE(EPERM)), ALLOW),
    /* The tenant has the uid of process 1 and of the keepers. Without descriptors, or at the lowest priority, those could no
     * longer measure the workspace or answer in time. A filter cannot tell a keeper's number from another's, so each process
     * and thread may change itself only. */
    IF_EQUAL(SYS_prlimit64, LOAD(arguments[0]), UNLESS_EQUAL(0, REFUSE(EPERM)), LOAD(arguments[1]),
             UNLESS_EQUAL(RLIMIT_CORE, ALLOW), LOAD(arguments[2]), UNLESS_EQUAL(0, REFUSE(0)), LOAD_HIGH(arguments[2]),
             UNLESS_EQUAL(0, REFUSE(0)), ALLOW),
    /* main.c has set the limit of core dumps. The call succeeds for programs that turn them off, and changes nothing. */
    IF_EQUAL(SYS_setrlimit, LOAD(arguments[0]), IF_EQUAL(RLIMIT_CORE, REFUSE(0)), ALLOW),
    IF_EQUAL(SYS_setpriority, LOAD(arguments[0]), UNLESS_EQUAL(PRIO_PROCESS, REFUSE(EPERM)), ONLY_ITSELF(arguments[1])),
    IF_EQUAL(SYS_ioprio_set, LOAD(arguments[0]), UNLESS_EQUAL(IOPRIO_WHO_PROCESS, REFUSE(EPERM)),
             ONLY_ITSELF(arguments[1])),
    IF_EQUAL(SYS_sched_setscheduler, ONLY_ITSELF(arguments[0])),
    IF_EQUAL(SYS_sched_setparam, ONLY_ITSELF(arguments[0])),
    IF_EQUAL(SYS_sched_setattr, ONLY_ITSELF(arguments[0])),
    /* Thread libraries bind each new thread by its number. A keeper bound to one processor still gets its share of it, which
     * is what it gets beside as many busy processes anyway; process 1 may not be bound. */
    IF_EQUAL(SYS_sched_setaffinity, LOAD(arguments[0]), IF_EQUAL(1, REFUSE(EPERM)), ALLOW),
#endif
    ALLOW,
};

bool seccomp_narrow(void)
{
    struct program program = {.length = sizeof filter / sizeof *filter, .instructions = filter};
#ifdef NATIVE_ARCH
    return prctl(PR_SET_SECCOMP, MODE_FILTER, &program, 0, 0) == 0;
#else
    (void)program;
    return false;
#endif
}
