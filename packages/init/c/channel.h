/*
 * A channel is one request that takes time: a command with its keeper, or a file operation in one.
 *
 *   open ──► answered (EXIT, FAIL or DONE sent, number free again) ──► detached ──► freed when its process is reaped
 *
 * At most CHANNELS_MAX are open. A command's keeper outlives its answer when background children do. It then stays in the table without
 * a number, so that init can still kill it with everything else.
 */
#ifndef BERTH_CHANNEL_H
#define BERTH_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fail.h"
#include "protocol.h"

enum channel_kind { CHANNEL_EXEC, CHANNEL_FILE };

/* Bytes on their way into a child: at most the stdin window. */
struct feed {
    int fd; /* -1: not there, or closed */
    uint8_t *buffer;
    size_t head, tail;
    size_t consumed; /* not yet returned as credit */
    bool ended;      /* STDIN_EOF was seen: close once empty */
};

/* Bytes on their way out of a child. */
struct tap {
    int fd; /* -1: at its end, or closed */
    uint8_t type;
    int poll_slot;
    size_t promised; /* bytes that were in the pipe when the command ended and are still to be read */
};

enum ending { ENDING_NOT, ENDING_TERM, ENDING_KILL };

struct channel {
    uint32_t number;
    enum channel_kind kind;
    bool open;
    bool orphan; /* belongs to a worker before the present one: output is dropped */

    pid_t child; /* the keeper; 0 once it is reaped, or idle again */
    int message; /* the keeper's socket; -1 when closed or given back */
    int message_slot, feed_slot;
    uint64_t credit;
    struct feed feed;
    struct tap out, err;

    /* Ending a tree, see ending.c. Also used by detached keepers. */
    enum ending ending;
    uint64_t ending_since, ending_next, quiet_since;
    unsigned quiet_steps, frozen_steps, late_steps;
    bool restless;   /* the last step found processes that the one before had not */
    bool child_lost; /* the keeper was killed: its processes are strays now */
    bool tree_gone;
    bool given_up;
    uint64_t stuck;
    enum fail fail_instead; /* a broken request on an open channel: answered with FAIL once the tree is gone */

    /* Commands, see exec.c. */
    pid_t leader;
    bool started, leader_ended, drain_over, look, final_look;
    bool kill_background;
    enum exit_reason reason;
    int status;
    uint64_t started_at, wall_us, cpu_us, max_rss_kib, oom_before;
    uint64_t timeout_at, grace_ms, drain_left_us, drain_since;

    /* File operations, see file.c. */
    bool killed, over, used_once;
    uint64_t kill_at;
    uint8_t *staging; /* ITEMS that are incomplete, or that wait for credit */
    size_t staged;
    uint8_t *result;
    size_t result_length;
};

struct channel *channel_open(uint32_t number, enum channel_kind kind, enum fail *why);
struct channel *channel_find(uint32_t number);
size_t channel_open_count(void);

/* For every entry of the table, open or detached: channel_at(0), channel_at(1), … until NULL. Entries move when one is freed. */
struct channel *channel_at(size_t index);
size_t channel_count(void);
struct channel *channel_of_child(pid_t pid);

/* Closes descriptors and gives up the number; freed at once when no process is left, else when it is reaped. */
void channel_answered(struct channel *channel);
void channel_free_if_done(struct channel *channel);
void channel_close_fd(int *fd);

void channel_fail(struct channel *channel, enum fail fail, const char *message, int error);
void send_fail(uint32_t number, enum fail fail, const char *message, int error);

#endif
