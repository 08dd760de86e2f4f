/* Sends an order to an idle keeper: payload and descriptors in one datagram. */
#ifndef BERTH_ORDER_H
#define BERTH_ORDER_H

#include "keeper.h"

/* A larger payload does not fit into a datagram: a new keeper is forked for it. */
enum { ORDER_MAX = FRAME_PAYLOAD_MAX };

/* False when the keeper cannot be reached, because it was killed. */
bool order_send(int socket, const struct order *order);

/* Blocks. The payload is read into `buffer`. False when init has closed its end. */
bool order_receive(int socket, uint8_t buffer[ORDER_MAX + 1], struct order *order);

void order_close(struct order *order);

#endif
