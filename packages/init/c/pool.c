#include "pool.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"
#include "oom.h"
#include "order.h"

/* An entry whose socket is -1 is dead, and waits to be reaped. */
static struct {
    pid_t pid;
    int socket;
} idle[POOL_MAX];
static size_t idle_count;
static bool is_cold;

static void remove_at(size_t index)
{
    idle[index] = idle[--idle_count];
}

static int fork_keeper(const struct order *order, pid_t *keeper, int *socket)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return errno;
    if (!set_nonblocking(pair[0])) {
        close(pair[0]);
        close(pair[1]);
        return errno;
    }
    oom_raise();
    pid_t pid = fork();
    if (pid == 0)
        keeper_run(pair[1], order);
    int error = pid < 0 ? errno : 0;
    oom_restore();
    close(pair[1]);
    if (error != 0) {
        close(pair[0]);
        return error;
    }
    *keeper = pid;
    *socket = pair[0];
    return 0;
}

int pool_start(const struct order *order, pid_t *keeper, int *socket)
{
    /* The first is reserved for file operations: when a command has used up the processes, measuring the workspace must not need a fork. */
    size_t kept = order->type == T_FILE ? 0 : 1;
    for (size_t i = idle_count; i-- > kept && order->length <= ORDER_MAX;) {
        if (idle[i].socket < 0)
            continue;
        if (order_send(idle[i].socket, order)) {
            *keeper = idle[i].pid;
            *socket = idle[i].socket;
            remove_at(i);
            return 0;
        }
        close(idle[i].socket);
        idle[i].socket = -1;
    }
    return fork_keeper(order, keeper, socket);
}

void pool_give(pid_t *keeper, int *socket)
{
    /* A keeper may have been reaped (0) while its last answer waited in the socket. Its slot would never become free. */
    if (idle_count == POOL_MAX || *keeper <= 0 || *socket < 0)
        return;
    idle[idle_count].pid = *keeper;
    idle[idle_count++].socket = *socket;
    *keeper = 0;
    *socket = -1;
}

void pool_warm_soon(void)
{
    is_cold = true;
}

void pool_step(void)
{
    pid_t keeper;
    int socket;
    if (!is_cold)
        return;
    is_cold = false;
    while (idle_count < POOL_WARM && fork_keeper(NULL, &keeper, &socket) == 0)
        pool_give(&keeper, &socket);
}

bool pool_knows(pid_t pid)
{
    for (size_t i = 0; i < idle_count; i++)
        if (idle[i].pid == pid)
            return true;
    return false;
}

void pool_reaped(pid_t pid)
{
    for (size_t i = 0; i < idle_count; i++) {
        if (idle[i].pid == pid) {
            if (idle[i].socket >= 0)
                close(idle[i].socket);
            remove_at(i);
            return;
        }
    }
}
