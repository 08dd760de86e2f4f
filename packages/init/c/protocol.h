/* The numbers of docs/init-protocol.md. Nothing else in the program spells a type, tag or limit. src/tags.ts and src/frame.ts
 * have the same under the same names; test/parity.test.ts compares them. */
#ifndef BERTH_PROTOCOL_H
#define BERTH_PROTOCOL_H

enum {
    FRAME_HEADER = 20,
    FRAME_TRAILER = 4,
    FRAME_PAYLOAD_MAX = 65536,
    FRAME_MAX = FRAME_HEADER + FRAME_PAYLOAD_MAX + FRAME_TRAILER,
    REQUEST_MAX = 2 * 1024 * 1024,
    COMMANDS_MAX = 64,
    CHANNELS_MAX = 72,
    STDIN_WINDOW = 262144,
    PING_MAX = 64,
    NONCE_BYTES = 16,
    LINK_NAME_MAX = 32,
    SHA256_BYTES = 32,
    KEY_BYTES = 32,
};

#define FRAME_MAGIC 0xBE27u
#define FRAME_VERSION 1u
#define FRAME_TRAILER_MARK 0xE0D50000u

enum from_worker {
    T_HELLO = 0x01,
    T_PING = 0x02,
    T_PART = 0x03,
    T_EXEC = 0x04,
    T_STDIN = 0x05,
    T_STDIN_EOF = 0x06,
    T_CREDIT = 0x07,
    T_KILL = 0x08,
    T_FILE = 0x09,
    T_STATS = 0x0A,
    T_SHUTDOWN = 0x0B,
    T_LINK = 0x0C,
    T_LINK_PROOF = 0x0D,
    T_PARK = 0x0E,
    T_FORWARD = 0x0F,
};

enum to_worker {
    T_HELLO_ACK = 0x41,
    T_PONG = 0x42,
    T_STARTED = 0x43,
    T_STDOUT = 0x44,
    T_STDERR = 0x45,
    T_EXIT = 0x46,
    T_FAIL = 0x47,
    T_STDIN_CREDIT = 0x48,
    T_DATA = 0x49,
    T_ITEMS = 0x4A,
    T_DONE = 0x4B,
    T_FENCED = 0x4C,
    T_LINKED = 0x4D,
    T_FORWARDED = 0x4E,
};

enum exec_tag {
    EXEC_ARG = 1,
    EXEC_ENV = 2,
    EXEC_CWD = 3,
    EXEC_FLAGS = 4,
    EXEC_TIMEOUT_MS = 5,
    EXEC_GRACE_MS = 6,
    EXEC_DRAIN_MS = 7,
    EXEC_CREDIT = 8,
};

enum exec_flag { EXEC_STDIN_FOLLOWS = 1, EXEC_KILL_BACKGROUND = 2, EXEC_NO_GROWTH = 4 };

enum file_tag {
    FILE_OP = 1,
    FILE_PATH = 2,
    FILE_PATH2 = 3,
    FILE_FLAGS = 4,
    FILE_OFFSET = 5,
    FILE_LENGTH = 6,
    FILE_MODE = 7,
    FILE_SIZE = 8,
    FILE_SHA256 = 9,
    FILE_CREDIT = 10,
    FILE_PATTERN = 11,
    FILE_MAX_ITEMS = 12,
    FILE_BUDGET = 13,
    FILE_MAX_DEPTH = 14,
    FILE_MAX_LINE_BYTES = 15,
    FILE_INCLUDE = 16,
    FILE_NAME = 17,
};

enum file_op {
    OP_READ = 1,
    OP_WRITE = 2,
    OP_STAT = 3,
    OP_LIST = 4,
    OP_REMOVE = 5,
    OP_MOVE = 6,
    OP_MKDIR = 7,
    OP_GLOB = 8,
    OP_GREP = 9,
    OP_USAGE = 10,
    OP_UNPACK = 11,
    OP_PACK = 12,
};

enum file_flag {
    READ_HASH = 1,
    WRITE_APPEND = 1,
    WRITE_PARENTS = 2,
    WRITE_EXCLUSIVE = 4,
    STAT_HASH = 1,
    STAT_NO_FOLLOW = 2,
    LIST_RECURSIVE = 1,
    REMOVE_RECURSIVE = 1,
    REMOVE_MISSING_OK = 2,
    MOVE_OVERWRITE = 1,
    MOVE_PARENTS = 2,
    MKDIR_PARENTS = 2,
    GLOB_DOT = 1,
    GREP_REGEX = 1,
    GREP_IGNORE_CASE = 2,
    UNPACK_CHECK = 1,
    UNPACK_EACH = 2,
    PACK_RECURSIVE = 1,
    PACK_FOLLOW = 2,
};

enum item_tag {
    ITEM_PATH = 1,
    ITEM_TYPE = 2,
    ITEM_SIZE = 3,
    ITEM_MODE = 4,
    ITEM_MTIME_MS = 5,
    ITEM_TARGET = 6,
    ITEM_LINE = 7,
    ITEM_TEXT = 8,
    ITEM_CUT = 9,
    ITEM_CODE = 10,
};

enum hello_tag { HELLO_NONCE = 1, HELLO_LEASE_MS = 2, HELLO_KEY = 3 };

enum hello_ack_tag {
    HELLO_ACK_NONCE = 1,
    HELLO_ACK_WATCHDOG_FIRED = 2,
    HELLO_ACK_RUNNING = 3,
    HELLO_ACK_BUILD_ID = 4,
    HELLO_ACK_UID = 5,
    HELLO_ACK_CGROUP = 6,
    HELLO_ACK_PID = 7,
    HELLO_ACK_FILTERED = 8,
    HELLO_ACK_LINKS = 9,
    HELLO_ACK_MOUNT_NAMESPACE = 10,
    HELLO_ACK_REFUSED = 11,
};

/* LINK has all three, LINK_PROOF the last. */
enum link_tag { LINK_NAME = 1, LINK_INIT_PROOF = 2, LINK_WORKER_PROOF = 3 };

enum linked_tag { LINKED_PROOF = 1, LINKED_ERRNO = 2 };

/* FORWARDED's errno is 0 for done. The socket is in the link directory. */
enum forward_tag { FORWARD_PORT = 1 };
enum forwarded_tag { FORWARDED_ERRNO = 1 };
#define FORWARD_SOCKET "egress"

enum exit_tag {
    EXIT_KIND = 1,
    EXIT_VALUE = 2,
    EXIT_REASON = 3,
    EXIT_OOM_KILLS = 4,
    EXIT_WALL_MICROS = 5,
    EXIT_CPU_MICROS = 6,
    EXIT_MAX_RSS_KIB = 7,
    EXIT_BACKGROUND = 8,
    EXIT_HELD = 9,
    EXIT_STUCK = 10,
};

enum exit_kind { KIND_EXITED = 1, KIND_SIGNALLED = 2 };

enum exit_reason {
    REASON_ITSELF = 0,
    REASON_TIMEOUT = 1,
    REASON_KILL = 2,
    REASON_WATCHDOG = 3,
    REASON_COLLATERAL = 4,
    REASON_HIDDEN = 5,
};

enum fail_tag { FAIL_CODE = 1, FAIL_MESSAGE = 2, FAIL_ERRNO = 3 };

enum done_tag {
    DONE_SIZE = 1,
    DONE_BYTES = 2,
    DONE_MODE = 3,
    DONE_MTIME_MS = 4,
    DONE_SHA256 = 5,
    DONE_CREATED = 6,
    DONE_TYPE = 7,
    DONE_TARGET = 8,
    DONE_COUNT = 9,
    DONE_TRUNCATED = 10,
    DONE_FILES = 11,
    DONE_SKIPPED = 12,
    DONE_APPARENT = 13,
    DONE_ENTRIES = 14,
    DONE_UNLINKED = 15,
    DONE_MEMORY_BYTES = 16,
    DONE_MEMORY_PEAK_BYTES = 17,
    DONE_CPU_MICROS = 18,
    DONE_PIDS = 19,
    DONE_OOM_KILLS = 20,
    DONE_CHANNELS = 21,
    DONE_HIDDEN = 22,
    DONE_DIRECTORIES = 23,
};

/* Payloads of one number. SHUTDOWN has KILL's, STDIN_CREDIT has CREDIT's. */
enum ping_tag { PING_LEFT_MS = 1 };
enum kill_tag { KILL_GRACE_MS = 1 };
enum credit_tag { CREDIT_BYTES = 1 };
enum started_tag { STARTED_PID = 1 };
enum fenced_tag { FENCED_EPOCH = 1 };

#endif
