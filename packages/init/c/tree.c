#include "tree.h"

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "process-stat.h"

enum side { UNKNOWN, INSIDE, OUTSIDE };

struct process {
    pid_t pid, parent, group, session;
    bool live; /* at least one thread of it has not exited */
    bool fresh;
    enum side side; /* of the trees being looked at */
};

/* More than any sensible pids limit. A later scan finds further processes, when these are dead. */
enum { PROCESSES_MAX = 32768 };

static DIR *proc;
static struct process *table;
static size_t count, capacity;
static pid_t *before;
static size_t before_count;

bool tree_open(void)
{
    /* With the /proc of another pid namespace init would signal processes of others. */
    char self[24] = "";
    if (readlink("/proc/self", self, sizeof self - 1) <= 0 || atol(self) != (long)getpid())
        return false;
    proc = opendir("/proc");
    return proc != NULL;
}

static bool room_for_one(void)
{
    if (count < capacity)
        return true;
    if (capacity >= PROCESSES_MAX)
        return false;
    size_t more = capacity == 0 ? 512 : capacity * 2;
    struct process *grown = realloc(table, more * sizeof *table);
    if (grown == NULL)
        return false;
    table = grown;
    pid_t *grown_before = realloc(before, more * sizeof *before);
    if (grown_before == NULL)
        return false;
    before = grown_before;
    capacity = more;
    return true;
}

static bool read_process(const char *name, struct process *out)
{
    struct process_stat stat;
    char path[32];
    size_t length = strlen(name);
    if (length > 20)
        return false;
    memcpy(path, name, length);
    memcpy(path + length, "/stat", 6);
    if (!process_stat_read(dirfd(proc), path, &stat))
        return false;
    /* A process whose main thread has exited is in state Z, and runs on as long as another thread of it does. */
    bool ended = stat.state == 'X' || stat.state == 'x' || (stat.state == 'Z' && stat.threads <= 1);
    *out = (struct process){.pid = (pid_t)atol(name),
                            .parent = stat.parent,
                            .group = stat.group,
                            .session = stat.session,
                            .live = !ended};
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static struct process *find(pid_t pid)
{
    struct process key = {.pid = pid};
    return count == 0 ? NULL : bsearch(&key, table, count, sizeof *table, by_pid);
}

bool tree_scan(uint64_t budget_us)
{
    uint64_t begun = now_us();
    bool whole = true;
    before_count = 0;
    for (size_t i = 0; i < count; i++)
        before[before_count++] = table[i].pid;
    count = 0;
    rewinddir(proc);
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        if (!room_for_one() || (count % 16 == 15 && now_us() - begun > budget_us)) {
            whole = false;
            break;
        }
        if (read_process(entry->d_name, &table[count]))
            count++;
    }
    if (count == 0)
        return false; /* init itself would be in it, so /proc could not be read at all */
    qsort(table, count, sizeof *table, by_pid);
    for (size_t i = 0, j = 0; i < count; i++) {
        while (j < before_count && before[j] < table[i].pid)
            j++;
        table[i].fresh = j == before_count || before[j] != table[i].pid;
    }
    return whole;
}

/* Goes up from a process to one whose side is known, and gives all on the way that side. So each process is visited once, in any order of
 * pids. The bound is for circles of parents, which appear when pids are reused while /proc is read. */
static void decide(struct process *process)
{
    struct process *top = process;
    size_t steps = 0;
    while (top != NULL && top->side == UNKNOWN && steps++ < count)
        top = find(top->parent);
    enum side side = top != NULL && top->side == INSIDE ? INSIDE : OUTSIDE;
    for (top = process; top != NULL && top->side == UNKNOWN; top = find(top->parent))
        top->side = side;
}

/* Marks all descendants of the processes that are INSIDE. */
static void mark_below(void)
{
    for (size_t i = 0; i < count; i++)
        decide(&table[i]);
}

static void mark_children(pid_t root)
{
    for (size_t i = 0; i < count; i++)
        table[i].side = table[i].parent == root ? INSIDE : table[i].pid == root ? OUTSIDE : UNKNOWN;
}

static size_t count_marked(size_t *fresh)
{
    size_t live = 0;
    for (size_t i = 0; i < count; i++) {
        if (table[i].side != INSIDE || !table[i].live)
            continue;
        live++;
        if (fresh != NULL && table[i].fresh)
            ++*fresh;
    }
    return live;
}

/* A leader calls setsid, so a group outside our own session lies wholly within one command's tree. */
static bool group_is_inside(const struct process *process)
{
    return process->group > 1 && process->session > 1 && process->session != getsid(0) && process->group != getpgrp();
}

static void signal_marked(int signal)
{
    pid_t group = 0; /* the last group that was killed, so that it is killed once for its many processes */
    for (size_t i = 0; i < count; i++) {
        struct process *process = &table[i];
        if (process->side != INSIDE || process->pid <= 1 || process->pid == getpid())
            continue;
        /* Zombies get KILL too: it does nothing to them, and helps if the scan took a live process for one. */
        if (!process->live && signal != SIGKILL)
            continue;
        if (signal == SIGKILL && process->live && process->group != group && group_is_inside(process)) {
            group = process->group;
            kill(-group, SIGKILL);
        }
        kill(process->pid, signal);
        if (signal != SIGKILL)
            kill(process->pid, SIGCONT);
    }
}

/* Not 0, 1 or init itself: below these are all commands, not one command's tree. */
static bool is_a_keeper(pid_t root)
{
    return root > 1 && root != getpid();
}

size_t tree_count(pid_t root)
{
    if (!is_a_keeper(root))
        return 0;
    mark_children(root);
    mark_below();
    return count_marked(NULL);
}

size_t tree_others(void)
{
    size_t live = 0;
    for (size_t i = 0; i < count; i++)
        live += table[i].live && table[i].pid != getpid();
    return live;
}

bool tree_has(pid_t root, pid_t except, bool (*is)(pid_t pid))
{
    if (!is_a_keeper(root))
        return false;
    mark_children(root);
    mark_below();
    for (size_t i = 0; i < count; i++)
        if (table[i].side == INSIDE && table[i].live && table[i].pid != except && is(table[i].pid))
            return true;
    return false;
}

size_t tree_signal(pid_t root, int signal, size_t *fresh)
{
    *fresh = 0;
    if (!is_a_keeper(root))
        return 0;
    mark_children(root);
    mark_below();
    size_t live = count_marked(fresh);
    signal_marked(signal);
    return live;
}

size_t tree_kill_strays(bool (*known)(pid_t pid))
{
    mark_children(getpid());
    for (size_t i = 0; i < count; i++)
        if (table[i].side == INSIDE && known(table[i].pid))
            table[i].side = OUTSIDE;
    mark_below();
    size_t live = count_marked(NULL);
    signal_marked(SIGKILL);
    return live;
}

/* The only place that calls kill(-1). Outside of a pid namespace of our own it would reach the whole machine. */
static bool signal_everything(int signal)
{
    return getpid() == 1 && kill(-1, signal) == 0;
}

bool tree_freeze(void)
{
    return signal_everything(SIGSTOP);
}

bool tree_thaw(void)
{
    return signal_everything(SIGCONT);
}

bool tree_kill_everything(void)
{
    return signal_everything(SIGKILL);
}
