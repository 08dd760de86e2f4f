/* Handles the worker's frames: checks the epoch, and passes each frame to its channel. */
#ifndef BERTH_CONTROL_H
#define BERTH_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "source.h"

/* Whether init's seccomp filter is on, for HELLO_ACK. */
void control_filtered(bool installed);

void control_frame(const struct frame *frame, enum origin from, uint64_t now);

/* SHUTDOWN, or a signal that asks for the same. */
void control_shutdown(uint64_t grace_ms, uint64_t now);
bool control_shutting_down(void);
uint64_t control_shutdown_deadline(void);

#endif
