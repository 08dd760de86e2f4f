#include "ending.h"

#include <signal.h>
#include <unistd.h>

#include "clock.h"
#include "forward.h"
#include "pool.h"
#include "tree.h"

static const uint64_t step_us = 2 * MS;
static const uint64_t freeze_us = 250 * MS;
static const uint64_t runaway_us = 1 * SECOND;
static const uint64_t give_up_us = 2 * SECOND;
/* On a busy machine a single step may take a second. So a condition must hold for this many steps, and not only for a time. */
static const unsigned steps_enough = 10;
static const uint64_t silent_keeper_us = 200 * MS;

/* Scanning a thousand processes takes about 10 ms. After a scan that takes too long, process 1 stops all processes and scans again.
 * Another process cannot do so, and scans without a bound. */
static uint64_t scan_budget_us(void)
{
    return getpid() == 1 ? 100 * MS : NEVER;
}

static uint64_t strays_next = NEVER;

static void enter(struct channel *channel, enum ending ending, uint64_t next, uint64_t now)
{
    channel->ending = ending;
    channel->ending_since = now;
    channel->ending_next = next;
    channel->quiet_since = 0;
    channel->quiet_steps = channel->frozen_steps = channel->late_steps = 0;
}

void ending_begin(struct channel *channel, enum exit_reason reason, uint64_t grace_ms, uint64_t now)
{
    if (channel->tree_gone || (channel->child == 0 && !channel->child_lost))
        return;
    if (channel->reason == REASON_ITSELF)
        channel->reason = reason;
    if (channel->ending == ENDING_KILL)
        return;
    if (grace_ms == 0 || channel->child_lost) {
        enter(channel, ENDING_KILL, now, now);
        return;
    }
    uint64_t deadline = deadline_after(now, grace_ms);
    if (channel->ending == ENDING_TERM) {
        if (deadline < channel->ending_next)
            channel->ending_next = deadline;
        return;
    }
    enter(channel, ENDING_TERM, deadline, now);
    size_t fresh;
    tree_scan(scan_budget_us());
    tree_signal(channel->child, SIGTERM, &fresh);
}

void ending_all(enum exit_reason reason, uint64_t grace_ms, uint64_t now)
{
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++)
        if (channel->kind == CHANNEL_EXEC)
            ending_begin(channel, reason, grace_ms, now);
}

void ending_kill_sandbox(enum exit_reason reason, uint64_t now)
{
    tree_kill_everything();
    ending_all(reason, 0, now);
    ending_strays_suspected(now);
}

void ending_strays_suspected(uint64_t now)
{
    if (strays_next > now)
        strays_next = now;
}

static bool is_ours(pid_t pid)
{
    return channel_of_child(pid) != NULL || pool_knows(pid) || forward_knows(pid);
}

/* A running keeper reports an empty tree within milliseconds. One that the tenant stops, perhaps again and again, never does. init kills
 * it, and then looks for the strays itself. */
static void wake_or_kill_keeper(struct channel *channel, bool quiet, uint64_t now)
{
    if (channel->child <= 1)
        return;
    kill(channel->child, SIGCONT);
    if (!quiet) {
        channel->quiet_since = 0;
        channel->quiet_steps = 0;
        return;
    }
    if (channel->quiet_steps++ == 0)
        channel->quiet_since = now;
    if (channel->quiet_steps > steps_enough && now - channel->quiet_since >= silent_keeper_us)
        kill(channel->child, SIGKILL);
}

static void kill_step(struct channel *channel, bool whole, bool frozen, uint64_t now)
{
    size_t fresh = 0;
    size_t live = channel->child_lost ? tree_kill_strays(is_ours) : tree_signal(channel->child, SIGKILL, &fresh);
    uint64_t elapsed = now - channel->ending_since;
    channel->restless = live > 0 && (fresh > 0 || channel->child_lost);
    channel->frozen_steps += frozen;
    if (live == 0 && whole && channel->child_lost) {
        channel->tree_gone = true;
        return;
    }
    wake_or_kill_keeper(channel, live == 0 && whole, now);
    /* There are still new processes, although the scans found the tree stopped. A process that is not new and does not die is blocked in the
     * kernel. Killing everything would not help there. */
    if (elapsed >= runaway_us && channel->restless && channel->frozen_steps > steps_enough && tree_kill_everything()) {
        enum exit_reason own = channel->reason;
        ending_all(REASON_COLLATERAL, 0, now);
        channel->reason = own;
    }
    channel->late_steps += elapsed >= give_up_us && whole;
    if (channel->late_steps > steps_enough) {
        channel->stuck = live;
        channel->tree_gone = channel->given_up = true;
    }
}

static bool is_due(const struct channel *channel, uint64_t now)
{
    return channel->ending != ENDING_NOT && !channel->tree_gone && now >= channel->ending_next;
}

/* Scans all processes, once for all channels that are due. Returns whether the scan was complete. */
static bool scan_for_due(bool freeze, bool *frozen)
{
    *frozen = freeze && tree_freeze();
    bool whole = tree_scan(*frozen ? NEVER : scan_budget_us());
    if (!whole && !*frozen && (*frozen = tree_freeze()))
        whole = tree_scan(NEVER);
    return whole;
}

void ending_step(uint64_t now)
{
    bool due = now >= strays_next, freeze = false, frozen;
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++) {
        if (!is_due(channel, now))
            continue;
        due = true;
        if (channel->ending == ENDING_TERM)
            enter(channel, ENDING_KILL, now, now);
        freeze = freeze || (channel->restless && now - channel->ending_since >= freeze_us);
    }
    if (!due)
        return;
    bool whole = scan_for_due(freeze, &frozen);
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++) {
        if (!is_due(channel, now))
            continue;
        channel->ending_next = now + step_us;
        kill_step(channel, whole, frozen, now);
    }
    if (now >= strays_next)
        strays_next = tree_kill_strays(is_ours) > 0 || !whole ? now + step_us : NEVER;
    if (frozen)
        tree_thaw();
}

uint64_t ending_due(void)
{
    uint64_t next = strays_next;
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++)
        if (channel->ending != ENDING_NOT && !channel->tree_gone && channel->ending_next < next)
            next = channel->ending_next;
    return next;
}
