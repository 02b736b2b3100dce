/* Runs the engine's BFMMLA (cpu_units.h) on matrices read from standard input, a (2, 4), b (4, 2), c (2, 2) a line, hexadecimal
 * encodings; writes the results, d (2, 2), one element a line. */
#include <stdio.h>

#include "cpu_units.h"

int main(void)
{
    unsigned given[20];
    if (mpg_unit_state(MPG_BFMMLA) != MPG_UNIT_READY) {
        fprintf(stderr, "no BFMMLA here: state %d\n", mpg_unit_state(MPG_BFMMLA));
        return 1;
    }
    for (;;) {
        uint16_t a[8], b[8];
        uint32_t d[4];
        for (int i = 0; i < 20; i++)
            if (scanf("%x", given + i) != 1)
                return 0;
        for (int i = 0; i < 8; i++) {
            a[i] = (uint16_t)given[i];
            b[i] = (uint16_t)given[8 + i];
        }
        for (int i = 0; i < 4; i++)
            d[i] = given[16 + i];
        mpg_units_row(MPG_BFMMLA, 0, (const char *)a, (const char *)b, d, 2, 2, 4, 0);
        for (int i = 0; i < 4; i++)
            printf("%08x\n", (unsigned)d[i]);
    }
}
