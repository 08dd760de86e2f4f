#include "forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "link.h"
#include "oom.h"
#include "outbox.h"
#include "record.h"
#include "relay.h"
#include "request.h"

enum { BACKLOG = 128 };

static const uint64_t again_us = 100 * MS;

static int listener = -1;
static uint64_t port_held;
static pid_t child;
static bool wanted;
static uint64_t due = NEVER;

/* Returns an errno. */
static int address_of_worker(struct sockaddr_un *address)
{
    const char *directory = link_path();
    if (directory == NULL)
        return ENOTSUP;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path, sizeof address->sun_path, "%s/%s", directory, FORWARD_SOCKET);
    return length < 0 || (size_t)length >= sizeof address->sun_path ? ENAMETOOLONG : 0;
}

/* Whether the worker's socket can be reached. To the worker this is an empty connection. */
static int try_worker(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int error = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
    close(fd);
    return error;
}

static int listen_on(uint64_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        return error;
    }
    listener = fd;
    port_held = port;
    return 0;
}

static int start(void)
{
    struct sockaddr_un address;
    int error = address_of_worker(&address);
    if (error != 0)
        return error;
    oom_raise();
    pid_t pid = fork();
    if (pid == 0)
        relay_run(listener, &address);
    error = pid < 0 ? errno : 0;
    oom_restore();
    if (error == 0)
        child = pid;
    return error;
}

static int begin(const uint8_t *payload, size_t length)
{
    struct sockaddr_un address;
    uint64_t port;
    if (!single_number(payload, length, FORWARD_PORT, &port) || port < 1024 || port > 65535)
        return EINVAL;
    int error = address_of_worker(&address);
    if (error == 0)
        error = try_worker(&address);
    if (error == 0 && listener < 0)
        error = listen_on(port);
    else if (error == 0 && port != port_held)
        error = EBUSY;
    if (error == 0 && child == 0 && due == NEVER)
        error = start();
    wanted = wanted || error == 0;
    return error;
}

void forward_request(const uint8_t *payload, size_t length)
{
    int error = begin(payload, length);
    uint8_t answer[16];
    struct record_writer writer = {.buffer = answer, .capacity = sizeof answer};
    write_number(&writer, FORWARDED_ERRNO, (uint64_t)error);
    outbox_send(T_FORWARDED, 0, answer, writer.length);
}

bool forward_knows(pid_t pid)
{
    return pid > 0 && pid == child;
}

void forward_reaped(uint64_t now)
{
    child = 0;
    due = wanted ? now + again_us : NEVER;
}

void forward_stop(void)
{
    wanted = false;
    due = NEVER;
}

void forward_step(uint64_t now)
{
    if (now < due)
        return;
    due = start() == 0 ? NEVER : now + again_us;
}

uint64_t forward_due(void)
{
    return due;
}
