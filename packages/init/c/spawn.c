#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum stage { STAGE_SETUP, STAGE_EXEC };

/* Written by the child, which shares its parent's memory until it execs or dies. */
struct attempt {
    const struct spawn *spawn;
    const char *search_path;
    int error;
    enum stage stage;
};

static const char *search_path_of(char *const *envp)
{
    for (; *envp != NULL; envp++)
        if (strncmp(*envp, "PATH=", 5) == 0)
            return *envp + 5;
    return DEFAULT_PATH;
}

/* By execvp's rules: EACCES if an entry of PATH has the program but it cannot be executed, ENOENT if none has it. Returns an errno. */
static int exec_along_path(const char *search_path, char *const *argv, char *const *envp)
{
    const char *name = argv[0];
    size_t name_length = strlen(name);
    char candidate[4096];
    bool denied = false;
    for (const char *at = search_path;;) {
        const char *end = strchr(at, ':');
        size_t length = end == NULL ? strlen(at) : (size_t)(end - at);
        if (length + 1 + name_length < sizeof candidate) {
            memcpy(candidate, at, length);
            size_t used = length;
            if (length > 0)
                candidate[used++] = '/';
            memcpy(candidate + used, name, name_length + 1);
            execve(candidate, argv, envp);
            if (errno == EACCES)
                denied = true;
            else if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG)
                return errno;
        }
        if (end == NULL)
            break;
        at = end + 1;
    }
    return denied ? EACCES : ENOENT;
}

static bool place(int fd, int target)
{
    return fd == target ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, target) == target;
}

static bool arrange(const struct spawn *spawn)
{
    /* fchdir first: the directory's descriptor may well be 0 or 1. */
    if (setsid() < 0 || fchdir(spawn->cwd) != 0)
        return false;
    const struct rlimit nothing = {0, 0};
    if (spawn->no_growth && setrlimit(RLIMIT_FSIZE, &nothing) != 0)
        return false;
    int in = spawn->in >= 0 ? spawn->in : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in < 0 || !place(in, STDIN_FILENO) || !place(spawn->out, STDOUT_FILENO) || !place(spawn->err, STDERR_FILENO))
        return false;
    /* init ignores only SIGPIPE and blocks everything; both would be inherited. */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    return sigaction(SIGPIPE, &standard, NULL) == 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0;
}

/* Runs in the parent's memory on a stack of its own, so it must not allocate memory, and must end by exec or _exit. */
static int leader_main(void *argument)
{
    struct attempt *attempt = argument;
    char **argv = attempt->spawn->argv, **envp = attempt->spawn->envp;
    attempt->stage = STAGE_SETUP;
    if (arrange(attempt->spawn)) {
        attempt->stage = STAGE_EXEC;
        if (argv[0][0] == 0) {
            errno = ENOENT;
        } else if (strchr(argv[0], '/') != NULL) {
            execve(argv[0], argv, envp);
        } else {
            errno = exec_along_path(attempt->search_path, argv, envp);
        }
    }
    attempt->error = errno;
    _exit(127);
}

static enum fail fail_of_exec(enum stage stage, int error)
{
    if (stage == STAGE_SETUP)
        return error == EACCES ? DENIED : IO;
    switch (error) {
    case ENOENT:
    case ENOTDIR: return COMMAND_NOT_FOUND;
    case E2BIG: return TOO_LONG;
    case ENAMETOOLONG: return COMMAND_NOT_FOUND;
    case EAGAIN:
    case ENOMEM: return FORK_FAILED;
    case EACCES:
    case EPERM:
    case ENOEXEC:
    case ETXTBSY:
    case ELOOP:
    case EISDIR: return NOT_EXECUTABLE;
    default: return IO;
    }
}

pid_t spawn_leader(const struct spawn *spawn, enum fail *why, int *error)
{
    /* The candidate path and libc's exec need a few kilobytes. A keeper starts one leader at a time, so one stack is enough. */
    static _Alignas(16) char stack[32768];
    struct attempt attempt = {.spawn = spawn, .search_path = search_path_of(spawn->envp)};
    /* vfork's semantics without its shared stack, and the same on every architecture and libc. */
    pid_t pid = clone(leader_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &attempt);
    if (pid < 0) {
        *why = FORK_FAILED;
        *error = errno;
        return 0;
    }
    if (attempt.error == 0)
        return pid;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    *why = fail_of_exec(attempt.stage, attempt.error);
    *error = attempt.error;
    return 0;
}
