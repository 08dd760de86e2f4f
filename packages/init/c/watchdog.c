#include "watchdog.h"

#include "channel.h"
#include "clock.h"
#include "ending.h"
#include "file.h"

/* Before the first HELLO nobody named a lease; this one only decides when an init that nobody ever spoke to gives up. */
static const uint64_t unnamed_lease_ms = 60000;

static uint64_t lease_ms;
static uint64_t heard_at;
static uint64_t exit_at = NEVER;
static bool armed, fired;

static uint64_t ten_leases_after(uint64_t at)
{
    uint64_t ms = lease_ms == 0 ? unnamed_lease_ms : lease_ms;
    return ms > NEVER / 10 ? NEVER : deadline_after(at, 10 * ms);
}

void watchdog_begin(uint64_t now)
{
    exit_at = ten_leases_after(now);
}

void watchdog_hello(uint64_t ms, uint64_t now)
{
    lease_ms = ms;
    watchdog_heard(now);
}

void watchdog_heard(uint64_t now)
{
    heard_at = now;
    armed = lease_ms > 0;
    exit_at = armed ? NEVER : ten_leases_after(now);
}

bool watchdog_take_fired(void)
{
    bool was = fired;
    fired = false;
    return was;
}

static void fire(uint64_t now)
{
    armed = false;
    fired = true;
    exit_at = ten_leases_after(now);
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++)
        if (channel->kind == CHANNEL_FILE && channel->open)
            file_kill(channel, 0, now);
    ending_kill_sandbox(REASON_WATCHDOG, now);
}

bool watchdog_step(bool stream_ended, uint64_t now)
{
    if (armed && now >= deadline_after(heard_at, lease_ms))
        fire(now);
    return stream_ended && now >= exit_at;
}

uint64_t watchdog_next(bool stream_ended)
{
    uint64_t next = armed ? deadline_after(heard_at, lease_ms) : NEVER;
    return stream_ended && exit_at < next ? exit_at : next;
}
