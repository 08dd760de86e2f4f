/*
 * The keeper: a process between init and one command, or the process of one file operation.
 *
 * For a command it is the subreaper of everything the command starts. A descendant that calls setsid or forks twice stays below the keeper,
 * where init finds it. So ECHILD from wait() in the keeper proves that the tree is gone.
 * A file operation may block, be slow, be killed or run out of memory in its keeper without harm to init.
 *
 *   idle ──EXEC──► starting ──► leader runs (blocked in wait) ──► leader over ──► nothing left ──► idle
 *    └────FILE──► works ──► idle                                       └──► background children left ──► idle, or exit
 *
 * A keeper takes the next order when it is done, which saves a fork and an exit (measured: 0.3 of 1.2 ms for a command, 0.3 of
 * 0.4 ms for a small file). Once init has closed its end of the socket, the keeper reads and drops the output of background children, or
 * exits when it is idle.
 */
#ifndef BERTH_KEEPER_H
#define BERTH_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fail.h"
#include "protocol.h"

enum keeper_news { KEEPER_STARTED, KEEPER_FAILED, KEEPER_LEADER_ENDED, KEEPER_TREE_GONE };

/* One datagram on the socket about a command. Both ends are the same program, so the struct is sent as it is. A file operation has one
 * datagram: the type and the payload of its answer. */
struct keeper_message {
    enum keeper_news news;
    pid_t leader;   /* STARTED */
    enum fail fail; /* FAILED */
    int error;
    int status; /* LEADER_ENDED: as of wait() */
    int tree_gone;
    uint64_t ended_at_us;
    uint64_t cpu_us, max_rss_kib; /* LEADER_ENDED, TREE_GONE: sum and maximum of all processes reaped so far */
};

/* The descriptors that go with an order; -1 where there is none. */
enum order_fd {
    ORDER_IN,      /* the leader or a write reads it; without one the leader gets /dev/null */
    ORDER_OUT,     /* the leader or a read writes to it */
    ORDER_ERR,     /* the leader's stderr */
    ORDER_OUT_END, /* the reading ends of a command's outputs, shared with init */
    ORDER_ERR_END,
    ORDER_FDS,
};

struct order {
    enum from_worker type; /* T_EXEC or T_FILE */
    uint8_t *payload;      /* one byte behind its end is writable */
    size_t length;
    int fds[ORDER_FDS];
};

/* In the forked child: serves the first order, if one is given, and then those that come over the socket. */
_Noreturn void keeper_run(int socket, const struct order *first);

#endif
