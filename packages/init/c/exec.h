/* Commands, from EXEC to EXIT, as init handles them. The states are in keeper.h (the process) and ending.h (a kill). */
#ifndef BERTH_EXEC_H
#define BERTH_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "channel.h"

/* `payload` must have one writable byte behind its end. */
void exec_start(uint32_t number, uint8_t *payload, size_t length, uint64_t now);

/* Takes the keeper's messages, moves output, and answers when the command is over, which may free the channel. */
void exec_service(struct channel *channel, bool message_ready, bool out_ready, bool err_ready, uint64_t now);

/* The keeper was reaped. */
void exec_keeper_reaped(struct channel *channel, int status, uint64_t now);

bool exec_drops_output(const struct channel *channel);
uint64_t exec_next_deadline(const struct channel *channel);

#endif
