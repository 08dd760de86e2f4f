#include "cgroup.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each counter: its file, the key before the number (NULL: the file is the number), and the divisor to our unit. */
struct source {
    const char *file;
    const char *key;
    uint64_t divisor;
};

static const struct source v2[CGROUP_VALUES] = {
    [CGROUP_MEMORY] = {"/sys/fs/cgroup/memory.current", NULL, 1},
    [CGROUP_MEMORY_PEAK] = {"/sys/fs/cgroup/memory.peak", NULL, 1},
    [CGROUP_CPU_MICROS] = {"/sys/fs/cgroup/cpu.stat", "usage_usec ", 1},
    [CGROUP_PIDS] = {"/sys/fs/cgroup/pids.current", NULL, 1},
    [CGROUP_OOM_KILLS] = {"/sys/fs/cgroup/memory.events", "oom_kill ", 1},
};

static const struct source v1[CGROUP_VALUES] = {
    [CGROUP_MEMORY] = {"/sys/fs/cgroup/memory/memory.usage_in_bytes", NULL, 1},
    [CGROUP_MEMORY_PEAK] = {"/sys/fs/cgroup/memory/memory.max_usage_in_bytes", NULL, 1},
    [CGROUP_CPU_MICROS] = {"/sys/fs/cgroup/cpuacct/cpuacct.usage", NULL, 1000},
    [CGROUP_PIDS] = {"/sys/fs/cgroup/pids/pids.current", NULL, 1},
    [CGROUP_OOM_KILLS] = {"/sys/fs/cgroup/memory/memory.oom_control", "oom_kill ", 1},
};

static const struct source *sources;
static int fds[CGROUP_VALUES] = {-1, -1, -1, -1, -1};
static unsigned version;

/* Held open: a tenant cannot make init look elsewhere, and a read is one call. */
void cgroup_open(void)
{
    sources = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? v2 : v1;
    for (int i = 0; i < CGROUP_VALUES; i++)
        fds[i] = open(sources[i].file, O_RDONLY | O_CLOEXEC);
    if (fds[CGROUP_MEMORY] >= 0 || fds[CGROUP_PIDS] >= 0)
        version = sources == v2 ? 2 : 1;
}

unsigned cgroup_version(void)
{
    return version;
}

/* The key at the start of a line, so that "oom_kill " is not found inside "oom_group_kill ". */
static const char *after_key(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != 0;) {
        if (strncmp(line, key, length) == 0)
            return line + length;
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return NULL;
}

bool cgroup_read(enum cgroup_value value, uint64_t *out)
{
    char text[1024];
    if (fds[value] < 0)
        return false;
    ssize_t got = pread(fds[value], text, sizeof text - 1, 0);
    if (got <= 0)
        return false;
    text[got] = 0;
    const char *at = sources[value].key == NULL ? text : after_key(text, sources[value].key);
    if (at == NULL || *at < '0' || *at > '9')
        return false;
    *out = strtoull(at, NULL, 10) / sources[value].divisor;
    return true;
}

uint64_t cgroup_oom_kills(void)
{
    uint64_t kills;
    return cgroup_read(CGROUP_OOM_KILLS, &kills) ? kills : 0;
}
