/* File operations, seen from init: from FILE to DONE or FAIL. The work itself is done in a keeper. */
#ifndef BERTH_FILE_H
#define BERTH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"

void file_start(uint32_t number, uint8_t *payload, size_t length);

/* Moves bytes, and answers when the keeper is through: the channel may be freed then. */
void file_service(struct channel *channel, bool message_ready, bool out_ready, uint64_t now);

/* The keeper is cut off, has a moment to take its temporary file away, and is then killed. */
void file_kill(struct channel *channel, uint64_t grace_ms, uint64_t now);
void file_keeper_reaped(struct channel *channel);

/* Its worker is gone: the rest of a file will not come, and output is not read. */
void file_orphan(struct channel *channel);

#endif
