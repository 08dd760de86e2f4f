#include "channel.h"

#include <stdlib.h>
#include <unistd.h>

#include "outbox.h"

/* Open channels, and keepers whose background children live on. The pids limit bounds the latter long before. */
enum { TABLE_MAX = 2048 };

static struct channel *table[TABLE_MAX];
static size_t table_count, open_count;

struct channel *channel_at(size_t index)
{
    return index < table_count ? table[index] : NULL;
}

size_t channel_count(void)
{
    return table_count;
}

size_t channel_open_count(void)
{
    return open_count;
}

struct channel *channel_find(uint32_t number)
{
    for (size_t i = 0; i < table_count; i++)
        if (table[i]->open && table[i]->number == number)
            return table[i];
    return NULL;
}

struct channel *channel_of_child(pid_t pid)
{
    for (size_t i = 0; i < table_count; i++)
        if (table[i]->child == pid)
            return table[i];
    return NULL;
}

struct channel *channel_open(uint32_t number, enum channel_kind kind, enum fail *why)
{
    /* Some channels are reserved for files: a sandbox full of commands must still be measurable. */
    size_t most = kind == CHANNEL_FILE ? CHANNELS_MAX : COMMANDS_MAX;
    if (open_count >= most || table_count == TABLE_MAX) {
        *why = BUSY;
        return NULL;
    }
    struct channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL) {
        *why = FORK_FAILED;
        return NULL;
    }
    channel->number = number;
    channel->kind = kind;
    channel->open = true;
    channel->message = channel->feed.fd = channel->out.fd = channel->err.fd = -1;
    channel->message_slot = channel->feed_slot = channel->out.poll_slot = channel->err.poll_slot = -1;
    channel->out.type = kind == CHANNEL_EXEC ? T_STDOUT : T_DATA;
    channel->err.type = T_STDERR;
    table[table_count++] = channel;
    open_count++;
    return channel;
}

void channel_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void channel_free_if_done(struct channel *channel)
{
    if (channel->open || channel->child != 0)
        return;
    for (size_t i = 0; i < table_count; i++) {
        if (table[i] == channel) {
            table[i] = table[--table_count];
            break;
        }
    }
    free(channel);
}

void channel_answered(struct channel *channel)
{
    channel_close_fd(&channel->message);
    channel_close_fd(&channel->feed.fd);
    channel_close_fd(&channel->out.fd);
    channel_close_fd(&channel->err.fd);
    free(channel->feed.buffer);
    free(channel->staging);
    free(channel->result);
    channel->feed.buffer = channel->staging = channel->result = NULL;
    channel->open = false;
    open_count--;
    channel_free_if_done(channel);
}

void send_fail(uint32_t number, enum fail fail, const char *message, int error)
{
    uint8_t payload[FAIL_PAYLOAD_MAX];
    outbox_send(T_FAIL, number, payload, fail_payload(payload, fail, message, error));
}

void channel_fail(struct channel *channel, enum fail fail, const char *message, int error)
{
    send_fail(channel->number, fail, message, error);
    channel_answered(channel);
}
