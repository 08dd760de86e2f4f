#include "loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "clock.h"
#include "control.h"
#include "ending.h"
#include "exec.h"
#include "file.h"
#include "forward.h"
#include "link.h"
#include "outbox.h"
#include "park.h"
#include "pool.h"
#include "source.h"
#include "stream.h"
#include "watchdog.h"

enum { SLOTS_MAX = 4 + 4 * CHANNELS_MAX };

/* After its end a stream may come back with the engine's next attach. init tries this often. */
static const uint64_t stream_retry_us = 100 * MS;
static const uint64_t signal_grace_ms = 1000;

static struct pollfd slots[SLOTS_MAX];
static nfds_t slot_count;
static struct source input = {.fd = -1, .origin = FROM_STDIN};
static uint64_t input_retry, output_retry;
static bool output_full;

static int watch(int fd, short events)
{
    slots[slot_count] = (struct pollfd){.fd = fd, .events = events};
    return (int)slot_count++;
}

static bool ready(int slot)
{
    return slot >= 0 && slots[slot].revents != 0;
}

static void watch_tap(struct channel *channel, struct tap *tap, bool dropping, bool nearly_over)
{
    tap->poll_slot = -1;
    if (tap->fd < 0)
        return;
    if (tap_wanted(channel, dropping))
        tap->poll_slot = watch(tap->fd, POLLIN);
    else if (nearly_over && tap_waiting(tap) == 0)
        tap->poll_slot = watch(tap->fd, 0); /* without credit wait only for its end */
}

static void watch_channel(struct channel *channel)
{
    bool is_exec = channel->kind == CHANNEL_EXEC;
    bool dropping = is_exec && exec_drops_output(channel);
    bool nearly_over = is_exec ? channel->leader_ended : channel->over;
    channel->message_slot = channel->message >= 0 && !channel->over ? watch(channel->message, POLLIN) : -1;
    channel->feed_slot = feed_wants_write(channel) ? watch(channel->feed.fd, POLLOUT) : -1;
    watch_tap(channel, &channel->out, dropping, nearly_over);
    watch_tap(channel, &channel->err, dropping, nearly_over);
}

static void service(struct channel *channel, uint64_t now)
{
    if (ready(channel->feed_slot))
        feed_write(channel);
    bool message = ready(channel->message_slot), out = ready(channel->out.poll_slot), err = ready(channel->err.poll_slot);
    channel->message_slot = channel->feed_slot = channel->out.poll_slot = channel->err.poll_slot = -1;
    if (channel->kind == CHANNEL_EXEC)
        exec_service(channel, message, out, err, now);
    else
        file_service(channel, message, out, now);
}

static void reap(uint64_t now)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
        struct channel *channel = channel_of_child(pid);
        if (WIFSTOPPED(status)) {
            /* The tenant stopped a process of ours, which has the same uid. Commands go on; a stopped file operation ends. */
            kill(pid, channel != NULL && channel->kind == CHANNEL_FILE ? SIGKILL : SIGCONT);
            continue;
        }
        if (pool_knows(pid))
            pool_reaped(pid);
        else if (forward_knows(pid))
            forward_reaped(now);
        else if (channel == NULL)
            ending_strays_suspected(now); /* init inherited an orphan, so a keeper was killed; there may be more */
        else if (channel->kind == CHANNEL_EXEC)
            exec_keeper_reaped(channel, status, now);
        else
            file_keeper_reaped(channel);
    }
}

/* As process 1, init obeys only signals from outside of the sandbox: their sender's pid reads 0. A tenant can forge any pid with
 * si_code < 0, but not with SI_USER. */
static bool from_outside(const struct signalfd_siginfo *info)
{
    return getpid() != 1 || (info->ssi_code == SI_USER && info->ssi_pid == 0);
}

static void take_signals(int signals, uint64_t now)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD && from_outside(&info))
            control_shutdown(signal_grace_ms, now);
    reap(now);
}

static void take_input(bool is_ready, uint64_t now)
{
    if (is_ready)
        input_retry = source_read(&input, now) == SOURCE_ENDED ? now + stream_retry_us : 0;
    else if (input.frames_left)
        source_take_frames(&input, now);
}

static void take_link(bool is_ready, uint64_t now)
{
    struct source *link = link_source();
    if (is_ready && link->fd >= 0) {
        if (source_read(link, now) == SOURCE_ENDED)
            link_close();
    } else if (link->frames_left) {
        source_take_frames(link, now);
    }
}

static void give_output(uint64_t now)
{
    int fd = link_output(STDOUT_FILENO);
    if (outbox_waiting() == 0 || (fd == STDOUT_FILENO && now < output_retry))
        return;
    enum outbox_state state = outbox_flush(fd);
    output_full = state == OUTBOX_FULL;
    output_retry = 0;
    if (state == OUTBOX_BROKEN && fd == STDOUT_FILENO)
        output_retry = now + stream_retry_us;
    else if (state == OUTBOX_BROKEN)
        link_close();
}

static uint64_t soonest(uint64_t now)
{
    uint64_t next = ending_due(), parking = park_due(), forward = forward_due();
    next = parking < next ? parking : next;
    next = forward < next ? forward : next;
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++) {
        if (!channel->open)
            continue;
        uint64_t due = channel->kind == CHANNEL_EXEC ? exec_next_deadline(channel) : channel->kill_at;
        next = due < next ? due : next;
    }
    uint64_t dog = watchdog_next(input_retry != 0), down = control_shutdown_deadline();
    next = dog < next ? dog : next;
    next = down < next ? down : next;
    if (input_retry > now && input_retry < next)
        next = input_retry;
    if (output_retry > now && output_retry < next)
        next = output_retry;
    return next;
}

static int poll_timeout(uint64_t now, uint64_t next)
{
    if (next == NEVER)
        return -1;
    if (next <= now)
        return 0;
    uint64_t ms = (next - now + MS - 1) / MS;
    return ms > 60000 ? 60000 : (int)ms;
}

static bool finished(uint64_t now)
{
    if (!control_shutting_down())
        return false;
    if (now >= control_shutdown_deadline())
        return true;
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++)
        if (channel->open || !channel->tree_gone)
            return false;
    return outbox_waiting() == 0;
}

int loop_run(int signals)
{
    if (!source_begin(&input, STDIN_FILENO))
        return 1;
    uint64_t now = now_us();
    watchdog_begin(now);
    for (;;) {
        bool take = !input.frames_left && input_retry <= now;
        const struct source *link = link_source();
        slot_count = 0;
        int signal_slot = watch(signals, POLLIN);
        int input_slot = take ? watch(STDIN_FILENO, POLLIN) : -1;
        int link_slot = link->fd >= 0 && !link->frames_left ? watch(link->fd, POLLIN) : -1;
        int output_slot = outbox_waiting() > 0 && output_full ? watch(link_output(STDOUT_FILENO), POLLOUT) : -1;
        struct channel *channel;
        for (size_t i = 0; (channel = channel_at(i)) != NULL; i++)
            if (channel->open)
                watch_channel(channel);
        if (poll(slots, slot_count, poll_timeout(now, soonest(now))) < 0)
            for (nfds_t i = 0; i < slot_count; i++)
                slots[i].revents = 0;
        now = now_us();
        if (ready(output_slot) || !output_full)
            give_output(now);
        take_input(ready(input_slot), now);
        take_link(ready(link_slot), now);
        if (ready(signal_slot))
            take_signals(signals, now);
        if (watchdog_step(input_retry != 0, now))
            return 0;
        ending_step(now);
        forward_step(now);
        /* Backwards: answering a channel frees it, and the last one, which was served already, takes its place. */
        for (size_t i = channel_count(); i-- > 0;) {
            channel = channel_at(i);
            if (channel->open)
                service(channel, now);
        }
        park_step(now);
        give_output(now);
        pool_step();
        if (finished(now))
            return 0;
    }
}
