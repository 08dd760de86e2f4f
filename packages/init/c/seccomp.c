#include "seccomp.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* The kernel's interface, which never changes. musl comes without the kernel's headers. */
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
enum { OP_LOAD = 0x20, OP_IF_EQUAL = 0x15, OP_IF_AT_LEAST = 0x35, OP_RETURN = 0x06 };
enum { MODE_FILTER = 2, ANSWER_ALLOW = 0x7fff0000, ANSWER_ERRNO = 0x00050000 };
#if defined(__x86_64__)
#define NATIVE_ARCH 0xc000003eu
#elif defined(__aarch64__)
#define NATIVE_ARCH 0xc00000b7u
#endif

/* The same on every architecture; older headers do not know them. */
enum { IO_URING_FIRST = 425, IO_URING_LAST = 427 };
/* From here on x86-64 counts the calls of its x32 variant. */
enum { X32_FIRST = 0x40000000 };

#define LOAD(field) {OP_LOAD, 0, 0, (uint32_t)offsetof(struct call, field)}
#define IF_EQUAL(what, yes, no) {OP_IF_EQUAL, yes, no, (uint32_t)(what)}
#define IF_AT_LEAST(what, yes, no) {OP_IF_AT_LEAST, yes, no, (uint32_t)(what)}
#define ALLOW {OP_RETURN, 0, 0, ANSWER_ALLOW}
#define REFUSE(error) {OP_RETURN, 0, 0, (uint32_t)ANSWER_ERRNO | (uint32_t)(error)}

void seccomp_narrow(void)
{
#ifdef NATIVE_ARCH
    /* Another architecture's calls (int 0x80) would pass a filter by numbers. Sockets: only the families that a network namespace
     * confines; AF_VSOCK reaches the hypervisor whatever the network mode, AF_ALG and the rest are kernel code nobody here needs.
     * io_uring does its work outside of the calls that a filter sees. prlimit on another process: the tenant has this one's uid,
     * and without descriptors it could no longer measure the workspace. Not being dumpable would hide from that measuring what a
     * process has open; it is told yes and stays as it is. */
    static const struct instruction filter[] = {
        LOAD(architecture),
        IF_EQUAL(NATIVE_ARCH, 0, 4),
        LOAD(number),
        IF_AT_LEAST(X32_FIRST, 2, 0),
        IF_AT_LEAST(IO_URING_LAST + 1, 2, 0),
        IF_AT_LEAST(IO_URING_FIRST, 0, 1),
        REFUSE(ENOSYS),
        IF_EQUAL(SYS_prctl, 15, 0),
        IF_EQUAL(SYS_prlimit64, 10, 0),
        IF_EQUAL(SYS_socket, 2, 0),
        IF_EQUAL(SYS_socketpair, 1, 0),
        ALLOW,
        LOAD(arguments[0]),
        IF_EQUAL(AF_UNIX, 4, 0),
        IF_EQUAL(AF_INET, 3, 0),
        IF_EQUAL(AF_INET6, 2, 0),
        IF_EQUAL(AF_NETLINK, 1, 0),
        REFUSE(EAFNOSUPPORT),
        ALLOW,
        LOAD(arguments[0]),
        IF_EQUAL(0, 0, 1),
        ALLOW,
        REFUSE(EPERM),
        LOAD(arguments[0]),
        IF_EQUAL(PR_SET_DUMPABLE, 1, 0),
        ALLOW,
        LOAD(arguments[1]),
        IF_EQUAL(0, 0, 1),
        REFUSE(0),
        ALLOW,
    };
    struct program program = {.length = sizeof filter / sizeof *filter, .instructions = filter};
    prctl(PR_SET_SECCOMP, MODE_FILTER, &program, 0, 0);
#endif
}
