#include "plan.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001B3u;
    return hash ^ hash >> 29;
}

/* The slot of a path, or the free one where it belongs. */
static size_t slot_of(const struct plan *plan, const char *path, size_t length)
{
    size_t slot = (size_t)hash_of(path, length) & (plan->slot_count - 1);
    for (; plan->slots[slot] != 0; slot = (slot + 1) & (plan->slot_count - 1)) {
        const char *there = plan->entries[plan->slots[slot] - 1].path;
        if (strncmp(there, path, length) == 0 && there[length] == 0)
            break;
    }
    return slot;
}

static bool grow(struct plan *plan)
{
    size_t capacity = plan->capacity == 0 ? 1024 : plan->capacity * 2;
    struct plan_entry *entries = realloc(plan->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    plan->entries = entries;
    uint32_t *slots = calloc(capacity * 2, sizeof *slots);
    if (slots == NULL)
        return false;
    free(plan->slots);
    plan->capacity = capacity;
    plan->slots = slots;
    plan->slot_count = capacity * 2;
    for (size_t i = 0; i < plan->count; i++)
        slots[slot_of(plan, entries[i].path, strlen(entries[i].path))] = (uint32_t)i + 1;
    return true;
}

static char *kept(struct plan *plan, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = size > PLAN_BYTES_MAX - plan->bytes ? NULL : malloc(size);
    if (copy == NULL)
        return NULL;
    plan->bytes += size;
    return memcpy(copy, text, size);
}

enum plan_answer plan_add(struct plan *plan, const char *path, char type, const char *target, char *was)
{
    *was = 0;
    if (plan->count == plan->capacity && !grow(plan))
        return PLAN_FULL;
    size_t slot = slot_of(plan, path, strlen(path));
    bool again = plan->slots[slot] != 0;
    if (!again && plan->count == PLAN_ENTRIES_MAX)
        return PLAN_FULL;
    char *kept_target = kept(plan, target), *kept_path = again ? NULL : kept(plan, path);
    if (kept_target == NULL || (!again && kept_path == NULL)) {
        free(kept_target);
        free(kept_path);
        return PLAN_FULL;
    }
    if (again) {
        struct plan_entry *entry = &plan->entries[plan->slots[slot] - 1];
        *was = entry->type;
        free(entry->target);
        entry->type = type;
        entry->target = kept_target;
        return PLAN_AGAIN;
    }
    plan->entries[plan->count++] = (struct plan_entry){.type = type, .path = kept_path, .target = kept_target};
    plan->slots[slot] = (uint32_t)plan->count;
    return PLAN_NEW;
}

const struct plan_entry *plan_find(const struct plan *plan, const char *path, size_t length)
{
    if (plan->slot_count == 0)
        return NULL;
    size_t slot = slot_of(plan, path, length);
    return plan->slots[slot] == 0 ? NULL : &plan->entries[plan->slots[slot] - 1];
}

void plan_free(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->entries[i].path);
        free(plan->entries[i].target);
    }
    free(plan->entries);
    free(plan->slots);
    *plan = (struct plan){.count = 0};
}
