#include "room.h"

enum { DIRECTORY_BYTES = 4096 };

static uint64_t bytes_left = UINT64_MAX, entries_left = UINT64_MAX, entries_taken, directories_taken;

void room_begin(const struct file_request *request)
{
    bytes_left = request->has_budget ? request->budget : UINT64_MAX;
    entries_left = request->has_max_items ? request->max_items : UINT64_MAX;
    entries_taken = directories_taken = 0;
}

bool room_take_entry(void)
{
    if (entries_left == 0)
        return false;
    entries_left--;
    entries_taken++;
    return true;
}

bool room_take_directory(void)
{
    if (entries_left == 0 || !room_take_bytes(DIRECTORY_BYTES, 0))
        return false;
    directories_taken++;
    return room_take_entry();
}

bool room_take_bytes(uint64_t size, uint64_t given_back)
{
    uint64_t more = size > given_back ? size - given_back : 0;
    if (more > bytes_left)
        return false;
    bytes_left -= more;
    return true;
}

void room_report(struct record_writer *done)
{
    write_number(done, DONE_ENTRIES, entries_taken);
    write_number(done, DONE_DIRECTORIES, directories_taken);
}
