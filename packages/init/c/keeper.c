#include "keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "descriptors.h"
#include "job.h"
#include "order.h"
#include "path.h"
#include "request.h"
#include "spawn.h"

static void send_message(int socket, const void *message, size_t length)
{
    /* init may have closed its end already; then the answer is not needed. */
    while (send(socket, message, length, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

static pid_t start(const struct order *order, enum fail *fail, int *error)
{
    struct exec_request request;
    struct clean_path path;
    struct spawn spawn = {.in = order->fds[ORDER_IN], .out = order->fds[ORDER_OUT], .err = order->fds[ORDER_ERR]};
    *error = 0;
    *fail = exec_request_parse(order->payload, order->length, &request);
    if (*fail == OK)
        *fail = path_clean(request.cwd, request.cwd_length, &path);
    if (*fail == OK)
        *fail = path_open_directory(&path, false, &spawn.cwd);
    if (*fail != OK)
        return 0;
    pid_t leader = 0;
    spawn.no_growth = (request.flags & EXEC_NO_GROWTH) != 0;
    spawn.argv = exec_request_vectors(order->payload, order->length, &request, &spawn.envp);
    if (spawn.argv == NULL)
        *fail = FORK_FAILED;
    else
        leader = spawn_leader(&spawn, fail, error);
    free(spawn.argv);
    close(spawn.cwd);
    return leader;
}

static uint64_t micros(struct timeval time)
{
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_usec;
}

enum reaped { SOME_LEFT, MANY_LEFT, NONE_LEFT };

/* The usage of a reaped process includes the children that it reaped. The keeper reaps orphans, so each process is counted once. */
static void count_usage(struct keeper_message *message, const struct rusage *usage)
{
    message->cpu_us += micros(usage->ru_utime) + micros(usage->ru_stime);
    if ((uint64_t)usage->ru_maxrss > message->max_rss_kib)
        message->max_rss_kib = (uint64_t)usage->ru_maxrss;
}

/* Reaps a bounded number of children, so that no chain of forks can keep it here. After MANY_LEFT the caller must call again without
 * waiting for SIGCHLD: the signal for the remaining ones was taken already. */
static enum reaped reap(struct keeper_message *message)
{
    for (int times = 0; times < 1000; times++) {
        struct rusage usage;
        pid_t pid = wait4(-1, NULL, WNOHANG, &usage);
        if (pid > 0)
            count_usage(message, &usage);
        if (pid <= 0)
            return pid < 0 && errno == ECHILD ? NONE_LEFT : SOME_LEFT;
    }
    return MANY_LEFT;
}

static void wait_for_leader(pid_t leader, struct keeper_message *message)
{
    for (;;) {
        struct rusage usage;
        pid_t pid = wait4(-1, &message->status, 0, &usage);
        if (pid < 0 && errno == ECHILD)
            _exit(1); /* impossible before the leader is reaped; init treats the keeper as lost */
        if (pid > 0)
            count_usage(message, &usage);
        if (pid != leader)
            continue;
        message->news = KEEPER_LEADER_ENDED;
        message->ended_at_us = now_us();
        return;
    }
}

static void drop(struct pollfd *slot)
{
    static char trash[65536];
    if (slot->fd < 0 || slot->revents == 0)
        return;
    ssize_t got = read(slot->fd, trash, sizeof trash);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        close(slot->fd);
        slot->fd = -1;
    }
}

/* Stays with the background children until the last is gone. True when init is still there. */
static bool keep(int socket, const struct order *order, struct keeper_message *message)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    enum { SIGNALS, SOCKET, OUT, ERR, SLOTS };
    struct pollfd slots[SLOTS] = {
        [SIGNALS] = {.fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN},
        [SOCKET] = {.fd = socket, .events = POLLIN},
        [OUT] = {.fd = -1, .events = POLLIN},
        [ERR] = {.fd = -1, .events = POLLIN},
    };
    for (enum reaped reaped; (reaped = reap(message)) != NONE_LEFT;) {
        /* Without a signalfd, when no descriptor is left, look every 100 ms. */
        int timeout_ms = reaped == MANY_LEFT ? 0 : slots[SIGNALS].fd < 0 ? 100 : -1;
        if (poll(slots, SLOTS, timeout_ms) <= 0)
            continue;
        struct signalfd_siginfo info;
        if (slots[SIGNALS].revents != 0 && read(slots[SIGNALS].fd, &info, sizeof info) < 0) {
            /* its content does not matter: the next reap() finds all children */
        }
        if (slots[SOCKET].revents != 0) {
            /* init sends nothing while a command has children. So it has closed the socket, and the keeper drops the output from now on. */
            slots[SOCKET].fd = -1;
            slots[OUT].fd = order->fds[ORDER_OUT_END];
            slots[ERR].fd = order->fds[ORDER_ERR_END];
        }
        drop(&slots[OUT]);
        drop(&slots[ERR]);
    }
    if (slots[SOCKET].fd < 0)
        return false;
    if (slots[SIGNALS].fd >= 0)
        close(slots[SIGNALS].fd);
    return true;
}

static void close_leader_ends(struct order *order)
{
    for (int i = ORDER_IN; i <= ORDER_ERR; i++) {
        if (order->fds[i] >= 0)
            close(order->fds[i]);
        order->fds[i] = -1;
    }
}

/* Runs one command. True when its tree is gone; false when background children live: then call keep(). */
static bool serve_command(int socket, struct order *order, struct keeper_message *message)
{
    memset(message, 0, sizeof *message);
    message->leader = start(order, &message->fail, &message->error);
    message->news = message->leader > 0 ? KEEPER_STARTED : KEEPER_FAILED;
    /* Before init gets the message: when a command has failed, its pipes must be at their end. */
    close_leader_ends(order);
    send_message(socket, message, sizeof *message);
    if (message->leader <= 0)
        return true;
    wait_for_leader(message->leader, message);
    message->tree_gone = reap(message) == NONE_LEFT;
    send_message(socket, message, sizeof *message);
    return message->tree_gone;
}

static void serve_file(int socket, struct order *order)
{
    static uint8_t result[RESULT_MAX];
    size_t length = job_run(order->payload, order->length, order->fds[ORDER_IN], order->fds[ORDER_OUT], result);
    order_close(order); /* before the result: with it init expects the end of the data */
    send_message(socket, result, length);
}

_Noreturn void keeper_run(int socket, const struct order *first)
{
    static uint8_t buffer[ORDER_MAX + 1];
    struct order order = {.payload = NULL, .fds = {-1, -1, -1, -1, -1}};
    struct keeper_message message;
    if (first != NULL)
        order = *first;
    int mine[1 + ORDER_FDS + ROOTS_MAX] = {socket};
    memcpy(mine + 1, order.fds, sizeof order.fds);
    for (size_t root = 0; root < ROOTS_MAX; root++)
        mine[1 + ORDER_FDS + root] = path_root_fd(root);
    keep_only(mine, sizeof mine / sizeof *mine);
    /* Keep 0 and 1 in use: a pipe with that number would be overwritten while the leader's descriptors are put in place. */
    if (dup(STDERR_FILENO) != STDIN_FILENO || dup(STDERR_FILENO) != STDOUT_FILENO)
        _exit(1);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    /* When process 1 ends, the kernel kills everything. Where init is not process 1 (tests), this kills the keeper. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (;; order.payload = NULL) {
        if (order.payload == NULL && !order_receive(socket, buffer, &order))
            _exit(0);
        if (order.type == T_FILE) {
            serve_file(socket, &order);
        } else if (!serve_command(socket, &order, &message)) {
            if (!keep(socket, &order, &message))
                _exit(0);
            message.news = KEEPER_TREE_GONE;
            send_message(socket, &message, sizeof message);
        }
        order_close(&order);
    }
}
