#include "hidden.h"

#include "channel.h"
#include "clock.h"
#include "ending.h"
#include "tree.h"
#include "unlinked.h"

/* Until its exec a leader shares the keeper's memory, which is hidden. So a leader that just started is not suspected. */
static const uint64_t just_started_us = 1 * SECOND;

void hidden_suspected(uint64_t now)
{
    tree_scan(NEVER);
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++) {
        if (channel->kind != CHANNEL_EXEC || !channel->started || channel->tree_gone)
            continue;
        pid_t except = now - channel->started_at < just_started_us ? channel->leader : 0;
        if (tree_has(channel->child, except, unlinked_is_hidden))
            ending_begin(channel, REASON_HIDDEN, 0, now);
    }
}
