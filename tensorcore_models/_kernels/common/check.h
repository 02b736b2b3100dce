/* Domains of operations. In a build with MPG_CHECK each operation checks its arguments, and ends the program with its name, its domain
 * and the value if an argument is outside the domain. In other builds these macros are empty. */
#ifndef MPG_CHECK_H
#define MPG_CHECK_H

#include <stdint.h>

#ifdef MPG_CHECK
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void mpg_outside(const char *operation, const char *domain, int lane, double x, double y)
{
    fprintf(stderr, "mpgemm: operation %s, lane %d: x = %.17g, y = %.17g are outside of its domain: %s\n", operation, lane, x,
            y, domain);
    abort();
}

/* One number x, or two; DOMAIN is a condition on them. */
#define MPG_DOMAIN(OPERATION, TYPE, X, DOMAIN) MPG_DOMAIN2(OPERATION, TYPE, X, X, DOMAIN)
#define MPG_DOMAIN2(OPERATION, TYPE, X, Y, DOMAIN)                                                                             \
    do {                                                                                                                       \
        const TYPE x = (X), y = (Y);                                                                                           \
        (void)y;                                                                                                               \
        if (!(DOMAIN))                                                                                                         \
            mpg_outside(OPERATION, #DOMAIN, 0, (double)x, (double)y);                                                          \
    } while (0)
/* The lanes of one vector, or of two. */
#define MPG_LANES_DOMAIN(OPERATION, TYPE, X, DOMAIN) MPG_LANES_DOMAIN2(OPERATION, TYPE, X, X, DOMAIN)
#define MPG_LANES_DOMAIN2(OPERATION, TYPE, X, Y, DOMAIN)                                                                       \
    do {                                                                                                                       \
        enum { COUNT = sizeof(X) / sizeof(TYPE) };                                                                             \
        TYPE xs[COUNT], ys[COUNT];                                                                                             \
        memcpy(xs, &(X), sizeof xs);                                                                                           \
        memcpy(ys, &(Y), sizeof ys);                                                                                           \
        for (int lane = 0; lane < COUNT; lane++) {                                                                             \
            const TYPE x = xs[lane], y = ys[lane];                                                                             \
            (void)y;                                                                                                           \
            if (!(DOMAIN))                                                                                                     \
                mpg_outside(OPERATION, #DOMAIN, lane, (double)x, (double)y);                                                   \
        }                                                                                                                      \
    } while (0)
#else
#define MPG_DOMAIN(...) ((void)0)
#define MPG_DOMAIN2(...) ((void)0)
#define MPG_LANES_DOMAIN(...) ((void)0)
#define MPG_LANES_DOMAIN2(...) ((void)0)
#endif

#endif
