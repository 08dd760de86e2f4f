/* The counters of the cgroup init itself is in, as far as the kernel shows them: v2, v1, or none (gVisor, bare hosts). */
#ifndef BERTH_CGROUP_H
#define BERTH_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

void cgroup_open(void);
unsigned cgroup_version(void);

enum cgroup_value { CGROUP_MEMORY, CGROUP_MEMORY_PEAK, CGROUP_CPU_MICROS, CGROUP_PIDS, CGROUP_OOM_KILLS, CGROUP_VALUES };

/* False if this kernel does not report it. */
bool cgroup_read(enum cgroup_value value, uint64_t *out);
uint64_t cgroup_oom_kills(void);

#endif
