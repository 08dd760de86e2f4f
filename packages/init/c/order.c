#include "order.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    char space[CMSG_SPACE(ORDER_FDS * sizeof(int))];
    struct cmsghdr align;
};

/* Goes before the payload: the type, and which descriptors are present. */
struct preamble {
    uint8_t type, present;
};

bool order_send(int socket, const struct order *order)
{
    struct preamble preamble = {.type = (uint8_t)order->type};
    int fds[ORDER_FDS];
    size_t count = 0;
    for (int i = 0; i < ORDER_FDS; i++) {
        if (order->fds[i] < 0)
            continue;
        preamble.present |= (uint8_t)(1u << i);
        fds[count++] = order->fds[i];
    }
    struct iovec pieces[2] = {{.iov_base = &preamble, .iov_len = sizeof preamble},
                              {.iov_base = order->payload, .iov_len = order->length}};
    union control control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    if (count > 0) {
        message.msg_control = control.space;
        message.msg_controllen = (socklen_t)CMSG_SPACE(count * sizeof *fds);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = (socklen_t)CMSG_LEN(count * sizeof *fds);
        memcpy(CMSG_DATA(header), fds, count * sizeof *fds);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(sizeof preamble + order->length);
}

bool order_receive(int socket, uint8_t buffer[ORDER_MAX + 1], struct order *order)
{
    struct preamble preamble;
    struct iovec pieces[2] = {{.iov_base = &preamble, .iov_len = sizeof preamble},
                              {.iov_base = buffer, .iov_len = ORDER_MAX}};
    union control control;
    struct msghdr message = {.msg_iov = pieces,
                             .msg_iovlen = 2,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t got;
    while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
    }
    if (got < (ssize_t)sizeof preamble)
        return false;
    int fds[ORDER_FDS];
    size_t count = 0, used = 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        count = (header->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
        memcpy(fds, CMSG_DATA(header), count * sizeof *fds);
    }
    for (int i = 0; i < ORDER_FDS; i++) {
        bool present = (preamble.present & 1u << i) != 0;
        if (present && used == count)
            return false; /* the kernel dropped it: the descriptor limit was reached */
        order->fds[i] = present ? fds[used++] : -1;
    }
    order->type = preamble.type;
    order->payload = buffer;
    order->length = (size_t)got - sizeof preamble;
    return true;
}

void order_close(struct order *order)
{
    for (int i = 0; i < ORDER_FDS; i++) {
        if (order->fds[i] >= 0)
            close(order->fds[i]);
        order->fds[i] = -1;
    }
}
