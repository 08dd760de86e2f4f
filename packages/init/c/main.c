#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "assign.h"
#include "cgroup.h"
#include "control.h"
#include "descriptors.h"
#include "link.h"
#include "loop.h"
#include "mounter.h"
#include "oom.h"
#include "outbox.h"
#include "parts.h"
#include "path.h"
#include "seccomp.h"
#include "tool.h"
#include "tree.h"

enum { STREAM_PIPE_BYTES = 1 << 20 };

static int complain(const char *what, int error)
{
    const char *parts[] = {"init: ", what, error != 0 ? ": " : "", error != 0 ? strerror(error) : "", "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            break;
    return 1;
}

/* --also: directories that other sandboxes may have too. init resolves their paths, and counts them for the quota. */
static const char *also[ROOTS_MAX - 2];
static size_t also_count;
/* --see: a directory that is only read. It does not count for the quota. */
static const char *seen;
/* --pool: the container was started before its sandbox is known. */
static bool of_pool;

/* Returns the workspace; NULL when the arguments are invalid. */
static const char *take_words(int argc, char **argv)
{
    const char *workspace = "/workspace";
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc && strcmp(argv[i], "--pool") == 0) {
            of_pool = true;
            break;
        }
        if (i + 1 == argc || argv[i + 1][0] != '/')
            return NULL;
        if (strcmp(argv[i], "--workspace") == 0)
            workspace = argv[i + 1];
        else if (strcmp(argv[i], "--link") == 0)
            link_directory(argv[i + 1]);
        else if (strcmp(argv[i], "--see") == 0 && seen == NULL)
            seen = argv[i + 1];
        else if (strcmp(argv[i], "--also") == 0 && also_count < sizeof also / sizeof *also)
            also[also_count++] = argv[i + 1];
        else
            return NULL;
    }
    return workspace;
}

/* Blocks all signals: they arrive through one descriptor, and no signal of a tenant interrupts a call. Resets all dispositions, so that a
 * leader has to reset only that of SIGPIPE. */
static int open_signals(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
    for (int signal = 1; signal < NSIG; signal++)
        sigaction(signal, &standard, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigset_t all, taken;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGHUP);
    return signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Opens 0, 1 and 2 if they are closed, so that no pipe of a command gets one of these numbers. */
static bool fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    return true;
}

/*
 * With a limit of 1 byte the kernel writes no core and starts no core_pattern helper, which would run as root of the host. With 0 it
 * still starts the helper. Where the engine sets 0, no process here may raise it, and `berth doctor sandbox` reports it. The seccomp filter
 * keeps every process from changing the limit.
 */
static bool turn_cores_off(void)
{
    struct rlimit limit = {1, 1};

    if (setrlimit(RLIMIT_CORE, &limit) == 0)
        return true;
    return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--mounter") == 0)
        return mounter_run(argv[2]);
    if (argc > 1 && argv[1][0] != '-')
        return tool_main(argc, argv);
    oom_open();
    /* Before any process of the tenant exists: none can then read init's memory or its descriptors. exec makes children dumpable again.
     * Keepers never exec, so they stay undumpable. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return complain("prctl", errno);
    if (!turn_cores_off())
        return complain("the limit of core dumps", errno);
    control_filtered(seccomp_narrow());
    umask(022);
    const char *workspace = take_words(argc, argv);
    if (workspace == NULL)
        return complain("usage: init [--workspace /DIR] [--link /DIR] [--also /DIR]... [--see /DIR] [--pool]", 0);
    if (!fill_standard_descriptors())
        return complain("no standard descriptors", errno);
    int error = of_pool ? assign_later(workspace) : path_open_root(workspace);
    if (error != 0)
        return complain(workspace, error);
    for (size_t i = 0; i < also_count; i++)
        if ((error = path_open_root(also[i])) != 0)
            return complain(also[i], error);
    if (seen != NULL && (error = path_open_root(seen)) != 0)
        return complain(seen, error);
    /* Files in shared directories must be writable for the group of the tenant's sandboxes. */
    if (also_count > 0)
        umask(002);
    if (!tree_open())
        return complain("/proc is missing or belongs to another pid namespace", 0);
    int signals = open_signals();
    if (signals < 0)
        return complain("signalfd", errno);
    /* Where init is not process 1 (tests), it must still inherit the children of a lost keeper. */
    if (getpid() != 1)
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    cgroup_open();
    if (!outbox_open() || !parts_open())
        return complain("no memory", errno);
    if (!set_nonblocking(STDIN_FILENO) || !set_nonblocking(STDOUT_FILENO))
        return complain("standard streams", errno);
    /* Larger pipes wake the engine's shim less often. If the kernel refuses, the default stays. */
    fcntl(STDIN_FILENO, F_SETPIPE_SZ, STREAM_PIPE_BYTES);
    fcntl(STDOUT_FILENO, F_SETPIPE_SZ, STREAM_PIPE_BYTES);
    return loop_run(signals);
}
