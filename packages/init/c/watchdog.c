#include "watchdog.h"

#include "assign.h"
#include "channel.h"
#include "clock.h"
#include "ending.h"
#include "file.h"
#include "request.h"

/* Used until the first HELLO names a lease: it decides when an init that never gets a HELLO gives up. */
static const uint64_t default_lease_ms = 60000;

static uint64_t lease_ms;
static uint64_t deadline = NEVER;
static uint64_t exit_at = NEVER;
static bool fired, starved;

static uint64_t ten_leases_after(uint64_t at)
{
    uint64_t ms = lease_ms == 0 ? default_lease_ms : lease_ms;
    return ms > NEVER / 10 ? NEVER : deadline_after(at, 10 * ms);
}

void watchdog_begin(uint64_t now)
{
    exit_at = ten_leases_after(now);
    if (assign_waits())
        deadline = deadline_after(now, default_lease_ms);
}

static void feed(uint64_t ms, uint64_t now)
{
    bool armed = lease_ms > 0;
    starved = false;
    deadline = armed ? deadline_after(now, ms) : NEVER;
    exit_at = armed ? NEVER : ten_leases_after(now);
}

void watchdog_hello(uint64_t ms, uint64_t now)
{
    lease_ms = ms;
    feed(ms, now);
}

void watchdog_ping(const uint8_t *payload, size_t length, uint64_t now)
{
    uint64_t ms;
    feed(single_number(payload, length, PING_LEFT_MS, &ms) ? ms : lease_ms, now);
}

bool watchdog_starved(void)
{
    return starved;
}

bool watchdog_take_fired(void)
{
    bool was = fired;
    fired = false;
    return was;
}

void watchdog_park(uint64_t now)
{
    deadline = NEVER;
    exit_at = ten_leases_after(now);
}

static void fire(uint64_t now)
{
    deadline = NEVER;
    fired = true;
    starved = true;
    exit_at = ten_leases_after(now);
    struct channel *channel;
    for (size_t i = 0; (channel = channel_at(i)) != NULL; i++)
        if (channel->kind == CHANNEL_FILE && channel->open)
            file_kill(channel, 0, now);
    ending_kill_sandbox(REASON_WATCHDOG, now);
}

bool watchdog_step(bool stream_ended, uint64_t now)
{
    if (now >= deadline) {
        if (assign_waits())
            return true;
        fire(now);
    }
    return stream_ended && now >= exit_at;
}

uint64_t watchdog_next(bool stream_ended)
{
    return stream_ended && exit_at < deadline ? exit_at : deadline;
}
