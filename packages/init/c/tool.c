#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *name_of(int error)
{
    switch (error) {
    case EACCES:
    case EPERM: return "unreadable";
    case ENOSPC:
    case EDQUOT: return "no-space";
    case ENAMETOOLONG: return "too-long";
    case ENOTTY:
    case EOPNOTSUPP:
    case EINVAL: return "unsupported";
    case ENOENT: return "not-found";
    case EEXIST:
    case ENOTEMPTY: return "exists";
    default: return "failed";
    }
}

/* A name may have any bytes. Each becomes one character of the JSON text. */
static void write_text(const char *text)
{
    putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at != 0; at++) {
        if (*at < 0x20 || *at >= 0x7f || *at == '"' || *at == '\\')
            printf("\\u%04x", *at);
        else
            putchar(*at);
    }
    putchar('"');
}

int tool_failed(int error, const char *path)
{
    printf("{\"error\":\"%s\",\"detail\":", name_of(error));
    write_text(strerror(error));
    printf(",\"path\":");
    write_text(path);
    printf("}\n");
    return 1;
}

int tool_main(int argc, char **argv)
{
    int code = 2;
    if (argc == 4 && strcmp(argv[1], "clone") == 0)
        code = clone_main(argv[2], argv[3]);
    else if (argc == 3 && strcmp(argv[1], "clear") == 0)
        code = clear_main(argv[2]);
    else if (argc > 2 && strcmp(argv[1], "volume") == 0)
        code = volume_main(argc - 2, argv + 2);
    else
        fputs("usage: init clone FROM TO | clear DIR | volume create DIR | volume snapshot FROM TO | volume freeze FROM TO | "
              "volume delete DIR | volume swap A B\n",
              stderr);
    return fflush(stdout) == 0 ? code : 1;
}
