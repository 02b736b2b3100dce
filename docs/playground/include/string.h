/* The functions of string.h that the kernels call, where there is no C library; runtime.c has them. */
#ifndef PLAYGROUND_STRING_H
#define PLAYGROUND_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);

#endif
