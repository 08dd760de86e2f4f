#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "clock.h"
#include "descriptors.h"
#include "ending.h"
#include "keeper.h"
#include "outbox.h"
#include "pool.h"
#include "record.h"
#include "request.h"
#include "stream.h"
#include "tree.h"

/* How long the loop may spend on counting background children. */
static const uint64_t scan_budget_us = 20 * MS;

static void close_pair(int pair[2])
{
    channel_close_fd(&pair[0]);
    channel_close_fd(&pair[1]);
}

struct command_pipes {
    int in[2], out[2], err[2];
};

/* Returns an errno. Our ends do not block, the command's do. */
static int open_pipes(struct command_pipes *pipes, bool with_stdin)
{
    int error = with_stdin ? open_pipe(pipes->in, 1, PIPE_LARGE) : 0;
    if (error == 0)
        error = open_pipe(pipes->out, 0, PIPE_LARGE);
    return error != 0 ? error : open_pipe(pipes->err, 0, PIPE_ORDINARY);
}

/* Returns an errno; on failure nothing is left open. */
static int launch(struct channel *channel, uint8_t *payload, size_t length, bool with_stdin)
{
    struct command_pipes pipes = {.in = {-1, -1}, .out = {-1, -1}, .err = {-1, -1}};
    int error = open_pipes(&pipes, with_stdin);
    struct order order = {.type = T_EXEC,
                          .payload = payload,
                          .length = length,
                          .fds = {[ORDER_IN] = pipes.in[0],
                                  [ORDER_OUT] = pipes.out[1],
                                  [ORDER_ERR] = pipes.err[1],
                                  [ORDER_OUT_END] = pipes.out[0],
                                  [ORDER_ERR_END] = pipes.err[0]}};
    if (error == 0)
        error = pool_start(&order, &channel->child, &channel->message);
    if (error != 0) {
        close_pair(pipes.in);
        close_pair(pipes.out);
        close_pair(pipes.err);
        return error;
    }
    channel_close_fd(&pipes.in[0]);
    close(pipes.out[1]);
    close(pipes.err[1]);
    channel->feed.fd = pipes.in[1];
    channel->out.fd = pipes.out[0];
    channel->err.fd = pipes.err[0];
    return 0;
}

void exec_start(uint32_t number, uint8_t *payload, size_t length, uint64_t now)
{
    struct exec_request request;
    enum fail fail = exec_request_parse(payload, length, &request);
    if (fail != OK) {
        send_fail(number, fail, NULL, 0);
        return;
    }
    struct channel *channel = channel_open(number, CHANNEL_EXEC, &fail);
    if (channel == NULL) {
        send_fail(number, fail, NULL, 0);
        return;
    }
    channel->credit = request.credit;
    channel->started_at = now;
    channel->timeout_at = request.timeout_ms == 0 ? NEVER : deadline_after(now, request.timeout_ms);
    channel->grace_ms = request.grace_ms;
    channel->drain_left_us = deadline_after(0, request.drain_ms);
    channel->kill_background = (request.flags & EXEC_KILL_BACKGROUND) != 0;
    channel->oom_before = cgroup_oom_kills();
    int error = launch(channel, payload, length, (request.flags & EXEC_STDIN_FOLLOWS) != 0);
    if (error != 0)
        channel_fail(channel, FORK_FAILED, NULL, error);
}

static void take_usage(struct channel *channel, const struct keeper_message *message)
{
    channel->cpu_us = message->cpu_us;
    channel->max_rss_kib = message->max_rss_kib;
}

static void leader_ended(struct channel *channel, const struct keeper_message *message, uint64_t now)
{
    channel->leader_ended = channel->look = true;
    channel->status = message->status;
    channel->wall_us = message->ended_at_us - channel->started_at;
    take_usage(channel, message);
    channel->out.promised = tap_waiting(&channel->out);
    channel->err.promised = tap_waiting(&channel->err);
    channel->drain_since = 0;
    if (message->tree_gone)
        channel->tree_gone = true;
    else if (channel->kill_background)
        ending_begin(channel, REASON_ITSELF, 0, now);
}

/* False when the channel was answered and is gone. */
static bool take_messages(struct channel *channel, uint64_t now)
{
    struct keeper_message message;
    while (channel->message >= 0) {
        ssize_t got = recv(channel->message, &message, sizeof message, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (got != (ssize_t)sizeof message) {
            channel_close_fd(&channel->message);
            return true;
        }
        switch (message.news) {
        case KEEPER_STARTED:
            channel->started = true;
            channel->leader = message.leader;
            if (!channel->orphan)
                outbox_send_number(T_STARTED, channel->number, STARTED_PID, (uint64_t)message.leader);
            break;
        case KEEPER_FAILED:
            pool_give(&channel->child, &channel->message);
            channel_fail(channel, message.fail, NULL, message.error);
            return false;
        case KEEPER_LEADER_ENDED: leader_ended(channel, &message, now); break;
        case KEEPER_TREE_GONE:
            take_usage(channel, &message);
            channel->tree_gone = true;
            break;
        }
    }
    return true;
}

static bool being_killed(const struct channel *channel)
{
    return channel->reason != REASON_ITSELF || channel->child_lost;
}

/* Once a killed tree is gone, nothing waits for credit any more. */
bool exec_drops_output(const struct channel *channel)
{
    return being_killed(channel) && channel->tree_gone;
}

/* The drain's clock stops only while output waits that init cannot take, for lack of credit or of room in the outbox. */
static void run_drain_clock(struct channel *channel, uint64_t now)
{
    bool running = channel->leader_ended && (channel->out.fd >= 0 || channel->err.fd >= 0) &&
                   channel->out.promised == 0 && channel->err.promised == 0 &&
                   (tap_wanted(channel, false) || (tap_waiting(&channel->out) == 0 && tap_waiting(&channel->err) == 0));
    if (channel->drain_since != 0) {
        uint64_t spent = now - channel->drain_since;
        channel->drain_left_us -= spent < channel->drain_left_us ? spent : channel->drain_left_us;
    }
    channel->drain_since = running ? now : 0;
    if (running && channel->drain_left_us == 0)
        channel->drain_over = true;
}

uint64_t exec_next_deadline(const struct channel *channel)
{
    uint64_t next = NEVER;
    if (channel->reason == REASON_ITSELF && !channel->leader_ended)
        next = channel->timeout_at;
    if (channel->drain_since != 0 && channel->drain_since + channel->drain_left_us < next)
        next = channel->drain_since + channel->drain_left_us;
    return next;
}

static bool over(const struct channel *channel)
{
    if (being_killed(channel) || (channel->kill_background && channel->leader_ended)) {
        if (!channel->tree_gone)
            return false;
        if (being_killed(channel))
            return channel->out.promised == 0 && channel->err.promised == 0;
    }
    return channel->leader_ended && ((channel->out.fd < 0 && channel->err.fd < 0) || channel->drain_over);
}

static uint64_t background_of(const struct channel *channel)
{
    if (channel->tree_gone || channel->child == 0)
        return 0;
    bool whole = tree_scan(scan_budget_us);
    uint64_t live = tree_count(channel->child);
    /* The worker stops watching the workspace when it reads 0, so an incomplete scan must not report 0. */
    return live == 0 && !whole ? 1 : live;
}

static void answer(struct channel *channel, uint64_t now)
{
    uint64_t background = background_of(channel);
    if (channel->tree_gone && !channel->given_up && channel->child != 0)
        pool_give(&channel->child, &channel->message);
    if (channel->fail_instead != OK) {
        channel_fail(channel, channel->fail_instead, NULL, 0);
        return;
    }
    uint8_t payload[256];
    struct record_writer writer = {.buffer = payload, .capacity = sizeof payload};
    int status = channel->leader_ended ? channel->status : SIGKILL;
    write_number(&writer, EXIT_KIND, WIFSIGNALED(status) ? KIND_SIGNALLED : KIND_EXITED);
    write_number(&writer, EXIT_VALUE, (uint64_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)));
    write_number(&writer, EXIT_REASON, channel->reason);
    write_number(&writer, EXIT_OOM_KILLS, cgroup_oom_kills() - channel->oom_before);
    write_number(&writer, EXIT_WALL_MICROS, channel->leader_ended ? channel->wall_us : now - channel->started_at);
    write_number(&writer, EXIT_CPU_MICROS, channel->cpu_us);
    write_number(&writer, EXIT_MAX_RSS_KIB, channel->max_rss_kib);
    write_number(&writer, EXIT_BACKGROUND, background);
    write_number(&writer, EXIT_HELD, channel->out.fd >= 0 || channel->err.fd >= 0);
    write_number(&writer, EXIT_STUCK, channel->stuck);
    outbox_send(T_EXIT, channel->number, payload, writer.length);
    channel_answered(channel);
}

void exec_service(struct channel *channel, bool message_ready, bool out_ready, bool err_ready, uint64_t now)
{
    /* Output may be there before poll has shown the keeper's message. STARTED must go first all the same. */
    if ((message_ready || !channel->started) && !take_messages(channel, now))
        return;
    if (channel->reason == REASON_ITSELF && !channel->leader_ended && now >= channel->timeout_at)
        ending_begin(channel, REASON_TIMEOUT, channel->grace_ms, now);
    bool dropping = exec_drops_output(channel);
    if (dropping && !channel->final_look) {
        channel->final_look = true;
        channel->out.promised = tap_waiting(&channel->out);
        channel->err.promised = tap_waiting(&channel->err);
    }
    /* At the end read both pipes again, because poll ran before the command's last writes. */
    bool look = dropping || channel->look;
    channel->look = false;
    for (int turns = look ? 4 : 1; turns > 0; turns--) {
        if (channel->started && (out_ready || look))
            tap_read(channel, &channel->out, dropping);
        if (channel->started && (err_ready || look))
            tap_read(channel, &channel->err, dropping);
    }
    if (channel->leader_ended && !tap_wanted(channel, dropping)) {
        tap_close_if_ended(&channel->out);
        tap_close_if_ended(&channel->err);
    }
    run_drain_clock(channel, now);
    if (over(channel))
        answer(channel, now);
}

void exec_keeper_reaped(struct channel *channel, int status, uint64_t now)
{
    channel->child = 0;
    if (channel->open && !take_messages(channel, now))
        return;
    /* The exec is finished when its tree is gone and its EXIT frame is sent, or no worker wants that frame any more. */
    bool orderly = WIFEXITED(status) && WEXITSTATUS(status) == 0 && (channel->leader_ended || !channel->open);
    channel->tree_gone = channel->tree_gone || orderly;
    if (!channel->tree_gone) {
        /* init inherits the lost keeper's children and cannot tell them from those of another lost keeper, so it kills all of them. */
        channel->child_lost = true;
        ending_strays_suspected(now);
        ending_begin(channel, channel->reason, 0, now);
    }
    channel_free_if_done(channel);
}
