#include "assign.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "path.h"
#include "protocol.h"

enum state { ASSIGN_OPEN, ASSIGN_WAITING, ASSIGN_BOUND, ASSIGN_SPOILED };

static enum state state;
static uint8_t bound_key[KEY_BYTES];
static const char *workspace_path;
static dev_t empty_device;

int assign_later(const char *dir)
{
    struct stat about;
    if (stat(dir, &about) != 0)
        return errno;
    workspace_path = dir;
    empty_device = about.st_dev;
    state = ASSIGN_WAITING;
    return 0;
}

/* The worker has mounted the workspace if the path is on another file system than when the container started. */
static int enter_workspace(void)
{
    struct stat about;
    if (stat(workspace_path, &about) != 0)
        return errno;
    if (about.st_dev == empty_device)
        return ENODEV;
    int error = path_open_root(workspace_path);
    if (error != 0)
        return error;
    return fchdir(path_workspace_fd()) == 0 ? 0 : errno;
}

int assign_key(const uint8_t *key)
{
    int error = 0;
    if (state == ASSIGN_SPOILED)
        return EPERM;
    if (key == NULL) {
        error = state == ASSIGN_BOUND ? EPERM : 0;
    } else if (state == ASSIGN_BOUND) {
        error = memcmp(bound_key, key, KEY_BYTES) == 0 ? 0 : EPERM;
    } else {
        error = state == ASSIGN_WAITING ? enter_workspace() : 0;
        memcpy(bound_key, key, KEY_BYTES);
        state = ASSIGN_BOUND;
    }
    if (error != 0)
        state = ASSIGN_SPOILED;
    return error;
}

bool assign_waits(void)
{
    return state == ASSIGN_WAITING;
}

bool assign_refuses(void)
{
    return state == ASSIGN_WAITING || state == ASSIGN_SPOILED;
}

uint64_t assign_mount_namespace(void)
{
    struct stat about;
    return stat("/proc/self/ns/mnt", &about) == 0 ? (uint64_t)about.st_ino : 0;
}
