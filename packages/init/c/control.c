#include "control.h"

#include <string.h>
#include <unistd.h>

#include "assign.h"
#include "build-id.h"
#include "bytes.h"
#include "cgroup.h"
#include "channel.h"
#include "clock.h"
#include "ending.h"
#include "exec.h"
#include "file.h"
#include "forward.h"
#include "link.h"
#include "outbox.h"
#include "park.h"
#include "parts.h"
#include "pool.h"
#include "record.h"
#include "request.h"
#include "stream.h"
#include "watchdog.h"

static uint64_t highest_epoch;
static bool greeted;
static bool filtered;
static bool shutting_down;
static uint64_t shutdown_deadline = NEVER;

void control_filtered(bool installed)
{
    filtered = installed;
}

bool control_shutting_down(void)
{
    return shutting_down;
}

uint64_t control_shutdown_deadline(void)
{
    return shutdown_deadline;
}

void control_shutdown(uint64_t grace_ms, uint64_t now)
{
    /* A tree that init gives up on takes two seconds beyond the grace. The third second is for sending the answers. */
    uint64_t deadline = deadline_after(deadline_after(now, grace_ms), 3000);
    if (deadline < shutdown_deadline)
        shutdown_deadline = deadline;
    shutting_down = true;
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++)
        if (channel->kind == CHANNEL_FILE && channel->open)
            file_kill(channel, grace_ms, now);
    ending_all(REASON_KILL, grace_ms, now);
}

struct greeting {
    uint8_t nonce[NONCE_BYTES];
    uint64_t lease_ms;
    const uint8_t *key; /* NULL: it names no sandbox */
};

static bool parse_hello(const struct frame *frame, struct greeting *out)
{
    struct record_reader reader = {.at = frame->payload, .left = frame->length};
    struct record record;
    bool has_nonce = false, has_lease = false;
    out->key = NULL;
    while (record_next(&reader, &record)) {
        if (record.tag == HELLO_NONCE) {
            if (has_nonce || record.length != NONCE_BYTES)
                return false;
            memcpy(out->nonce, record.value, NONCE_BYTES);
            has_nonce = true;
        } else if (record.tag == HELLO_LEASE_MS) {
            if (has_lease || !record_number(&record, &out->lease_ms))
                return false;
            has_lease = true;
        } else if (record.tag == HELLO_KEY) {
            if (out->key != NULL || record.length != KEY_BYTES)
                return false;
            out->key = record.value;
        }
    }
    return has_nonce && has_lease && !reader.malformed;
}

static void acknowledge(const uint8_t nonce[NONCE_BYTES], int refused)
{
    uint8_t payload[2048];
    struct record_writer writer = {.buffer = payload, .capacity = sizeof payload};
    write_bytes(&writer, HELLO_ACK_NONCE, nonce, NONCE_BYTES);
    write_number(&writer, HELLO_ACK_WATCHDOG_FIRED, watchdog_take_fired());
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++) {
        if (!channel->open)
            continue;
        uint8_t running[8];
        put_u32(running, channel->number);
        put_u32(running + 4, (uint32_t)(channel->leader > 0 ? channel->leader : channel->child));
        write_bytes(&writer, HELLO_ACK_RUNNING, running, sizeof running);
    }
    write_text(&writer, HELLO_ACK_BUILD_ID, build_id);
    write_number(&writer, HELLO_ACK_UID, getuid());
    write_number(&writer, HELLO_ACK_CGROUP, cgroup_version());
    write_number(&writer, HELLO_ACK_PID, (uint64_t)getpid());
    write_number(&writer, HELLO_ACK_FILTERED, filtered);
    write_number(&writer, HELLO_ACK_LINKS, link_possible());
    if (assign_waits())
        write_number(&writer, HELLO_ACK_MOUNT_NAMESPACE, assign_mount_namespace());
    if (refused != 0)
        write_number(&writer, HELLO_ACK_REFUSED, (uint64_t)refused);
    outbox_send(T_HELLO_ACK, 0, payload, writer.length);
}

static void hello(const struct frame *frame, uint64_t now)
{
    struct greeting greeting;
    if (!parse_hello(frame, &greeting)) {
        send_fail(frame->channel, BAD_REQUEST, NULL, 0);
        return;
    }
    highest_epoch = frame->epoch;
    greeted = true;
    link_close();
    park_over();
    outbox_set_epoch(highest_epoch);
    parts_forget();
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++) {
        if (!channel->open)
            continue;
        channel->orphan = true;
        if (channel->kind == CHANNEL_FILE)
            file_orphan(channel);
    }
    int refused = assign_key(greeting.key);
    acknowledge(greeting.nonce, refused);
    watchdog_hello(greeting.lease_ms, now);
    if (refused != 0)
        ending_kill_sandbox(REASON_KILL, now);
    /* Not before the workspace is open: keepers inherit its descriptor. */
    if (!assign_refuses())
        pool_warm_soon();
}

static void stats(uint32_t number)
{
    static const uint8_t tags[CGROUP_VALUES] = {
        [CGROUP_MEMORY] = DONE_MEMORY_BYTES,   [CGROUP_MEMORY_PEAK] = DONE_MEMORY_PEAK_BYTES,
        [CGROUP_CPU_MICROS] = DONE_CPU_MICROS, [CGROUP_PIDS] = DONE_PIDS,
        [CGROUP_OOM_KILLS] = DONE_OOM_KILLS,
    };
    uint8_t payload[128];
    struct record_writer writer = {.buffer = payload, .capacity = sizeof payload};
    for (int i = 0; i < CGROUP_VALUES; i++) {
        uint64_t value;
        if (cgroup_read((enum cgroup_value)i, &value))
            write_number(&writer, tags[i], value);
    }
    write_number(&writer, DONE_CHANNELS, channel_open_count());
    outbox_send(T_DONE, number, payload, writer.length);
}

static void request(const struct frame *frame, uint64_t now)
{
    size_t length;
    uint8_t *payload = parts_finish(frame->channel, frame->payload, frame->length, &length);
    if (frame->channel == 0 || payload == NULL)
        send_fail(frame->channel, BAD_REQUEST, NULL, 0);
    else if (channel_find(frame->channel) != NULL)
        send_fail(frame->channel, BAD_REQUEST, "the channel is in use", 0);
    else if (shutting_down)
        send_fail(frame->channel, BUSY, "shutting down", 0);
    else if (watchdog_starved() || park_refuses() || assign_refuses())
        send_fail(frame->channel, LEASE_OVER, NULL, 0);
    else if (frame->type == T_EXEC)
        exec_start(frame->channel, payload, length, now);
    else
        file_start(frame->channel, payload, length);
    if (payload != NULL && length > FRAME_PAYLOAD_MAX)
        parts_served();
}

static void park(uint32_t number, uint64_t now)
{
    if (number == 0 || channel_find(number) != NULL || shutting_down || !park_begin(number, now))
        send_fail(number, BUSY, NULL, 0);
}

static void end_channel(struct channel *channel, uint64_t grace_ms, uint64_t now)
{
    if (channel->kind == CHANNEL_EXEC)
        ending_begin(channel, REASON_KILL, grace_ms, now);
    else
        file_kill(channel, grace_ms, now);
}

/* Answers a malformed frame for a running channel. FAIL must be the channel's last frame, so the command ends first. */
static void spoil(struct channel *channel, uint64_t now)
{
    channel->fail_instead = BAD_REQUEST;
    end_channel(channel, 0, now);
}

static void to_channel(const struct frame *frame, uint64_t now)
{
    struct channel *channel = channel_find(frame->channel);
    uint64_t number;
    if (channel == NULL)
        return; /* it ended while this was on its way */
    if (frame->type == T_KILL) {
        if (single_number(frame->payload, frame->length, KILL_GRACE_MS, &number))
            end_channel(channel, number, now);
        else
            spoil(channel, now);
        return;
    }
    if (channel->orphan)
        return;
    switch (frame->type) {
    case T_CREDIT:
        if (!single_number(frame->payload, frame->length, CREDIT_BYTES, &number))
            spoil(channel, now);
        else
            channel->credit = number > UINT64_MAX - channel->credit ? UINT64_MAX : channel->credit + number;
        break;
    case T_STDIN:
        if (!feed_push(channel, frame->payload, frame->length))
            spoil(channel, now);
        break;
    case T_STDIN_EOF: feed_end(channel); break;
    default: break;
    }
}

void control_frame(const struct frame *frame, enum origin from, uint64_t now)
{
    if (from == FROM_LINK && !link_admits(frame))
        return;
    bool is_hello = frame->type == T_HELLO;
    if (is_hello && greeted && frame->epoch < highest_epoch) {
        outbox_send_number(T_FENCED, 0, FENCED_EPOCH, highest_epoch);
        return;
    }
    /* Only HELLO sets the epoch. init ignores other frames with a higher one. */
    if (!is_hello && (!greeted || frame->epoch != highest_epoch))
        return;
    uint64_t grace_ms;
    switch (frame->type) {
    case T_HELLO: hello(frame, now); break;
    case T_FORWARD: forward_request(frame->payload, frame->length); break;
    case T_LINK: link_offer(frame->payload, frame->length); break;
    case T_PING:
        if (!park_refuses())
            watchdog_ping(frame->payload, frame->length, now);
        if (frame->length <= PING_MAX)
            outbox_send(T_PONG, frame->channel, frame->payload, frame->length);
        else
            send_fail(frame->channel, BAD_REQUEST, NULL, 0);
        break;
    case T_PART: parts_add(frame->channel, frame->payload, frame->length); break;
    case T_EXEC:
    case T_FILE: request(frame, now); break;
    case T_STDIN:
    case T_STDIN_EOF:
    case T_CREDIT:
    case T_KILL: to_channel(frame, now); break;
    case T_STATS: stats(frame->channel); break;
    case T_PARK: park(frame->channel, now); break;
    case T_SHUTDOWN:
        if (single_number(frame->payload, frame->length, KILL_GRACE_MS, &grace_ms))
            control_shutdown(grace_ms, now);
        else
            send_fail(frame->channel, BAD_REQUEST, NULL, 0);
        break;
    default: break;
    }
}
