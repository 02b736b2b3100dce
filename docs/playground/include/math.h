/* The functions of math.h that the kernels call, where there is no C library: WebAssembly's instructions, and those of runtime.c. */
#ifndef PLAYGROUND_MATH_H
#define PLAYGROUND_MATH_H

#define fabs __builtin_fabs
#define copysign __builtin_copysign
#define sqrtf __builtin_sqrtf

double ldexp(double x, int exponent);
double fma(double x, double y, double z);
float fmaf(float x, float y, float z);

#endif
