#include "utf8.h"

#include <stdint.h>

bool utf8_is_valid(const char *text)
{
    for (const uint8_t *at = (const uint8_t *)text; *at != 0;) {
        uint8_t first = *at++;
        if (first < 0x80)
            continue;
        unsigned more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
        if (first < 0xC2 || first > 0xF4)
            return false;
        uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        for (; more > 0; more--, low = 0x80, high = 0xBF)
            if (*at < low || *at > high)
                return false;
            else
                at++;
    }
    return true;
}
