#include "park.h"

#include <unistd.h>

#include "cgroup.h"
#include "channel.h"
#include "clock.h"
#include "ending.h"
#include "file.h"
#include "forward.h"
#include "outbox.h"
#include "pool.h"
#include "record.h"
#include "tree.h"
#include "watchdog.h"

enum state { PARK_NONE, PARK_EMPTYING, PARK_PARKED };

static const uint64_t step_us = 2 * MS;
/* A process may be blocked in the kernel, such as on a disk that hangs. After this long init gives up, and the worker removes the
 * container. */
static const uint64_t give_up_us = 3 * SECOND;

static enum state state;
static uint32_t channel_number;
static uint64_t next = NEVER, give_up_at;

static void kill_all(uint64_t now)
{
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++)
        if (channel->kind == CHANNEL_FILE && channel->open)
            file_kill(channel, 0, now);
    ending_kill_sandbox(REASON_KILL, now);
}

bool park_begin(uint32_t channel, uint64_t now)
{
    if (state != PARK_NONE)
        return false;
    state = PARK_EMPTYING;
    channel_number = channel;
    give_up_at = deadline_after(now, give_up_us / MS);
    next = now;
    forward_stop();
    kill_all(now);
    return true;
}

static void become_parked(uint64_t now)
{
    uint8_t payload[32];
    struct record_writer writer = {.buffer = payload, .capacity = sizeof payload};
    uint64_t memory;
    if (cgroup_read(CGROUP_MEMORY, &memory))
        write_number(&writer, DONE_MEMORY_BYTES, memory);
    state = PARK_PARKED;
    next = NEVER;
    watchdog_park(now);
    outbox_send(T_DONE, channel_number, payload, writer.length);
}

/* Where init is not process 1 (tests), it sees processes of others, and its own idle keepers stay. */
static size_t left_alive(void)
{
    return getpid() == 1 ? tree_others() : tree_kill_strays(pool_knows);
}

/* Whether no thread of any other process is left, and no channel still owes an answer. */
static bool is_empty(void)
{
    return tree_scan(NEVER) && left_alive() == 0 && channel_open_count() == 0;
}

void park_step(uint64_t now)
{
    if (state != PARK_EMPTYING || now < next)
        return;
    if (is_empty()) {
        become_parked(now);
        return;
    }
    if (now >= give_up_at) {
        next = NEVER;
        send_fail(channel_number, BUSY, "a process in the sandbox does not die", 0);
        return;
    }
    next = now + step_us;
    tree_kill_everything();
    ending_strays_suspected(now);
}

uint64_t park_due(void)
{
    return next;
}

void park_over(void)
{
    state = PARK_NONE;
    next = NEVER;
}

bool park_refuses(void)
{
    return state != PARK_NONE;
}
