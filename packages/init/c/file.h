/* File operations, from FILE to DONE or FAIL, as init handles them. A keeper does the work. */
#ifndef BERTH_FILE_H
#define BERTH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"

void file_start(uint32_t number, uint8_t *payload, size_t length);

/* Moves bytes, and answers when the keeper is done, which may free the channel. */
void file_service(struct channel *channel, bool message_ready, bool out_ready, uint64_t now);

/* Closes the keeper's pipes, gives it a moment to remove its temporary file, and then kills it. */
void file_kill(struct channel *channel, uint64_t grace_ms, uint64_t now);
void file_keeper_reaped(struct channel *channel);

/* The worker of the request is gone: the rest of a file will not come, and no one reads the output. */
void file_orphan(struct channel *channel);

#endif
