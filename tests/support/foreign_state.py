"""A library that leaves a foreign floating-point state behind: flush-to-zero, or another rounding mode."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_compiler = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("cc") is None, reason="needs a C compiler named cc to build a small library"
)

SETTER = """
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
static void flush(int on) { _mm_setcsr((_mm_getcsr() & ~0x8040u) | (on ? 0x8040u : 0)); }
#elif defined(__aarch64__)
static void flush(int on)
{
    unsigned long x;
    __asm__ volatile("mrs %0, fpcr" : "=r"(x));
    x = on ? x | (1ul << 24) : x & ~(1ul << 24);
    __asm__ volatile("msr fpcr, %0" : : "r"(x));
}
#else
static void flush(int on) { (void)on; }
#endif
int foreign(int mode)
{
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
    flush(mode == 4);
    return fesetround(mode < 4 ? modes[mode] : FE_TONEAREST);
}
/* 1 where subnormal numbers are gone or sums are rounded otherwise */
int is_foreign(void)
{
    volatile double tiny = 5e-324, one = 1.0, eps = 1.2e-16;
    return tiny * one == 0.0 || one + eps != 1.0000000000000002 || -(one + eps) != -1.0000000000000002
           || one + eps / 4 != 1.0 || -one - eps / 4 != -1.0;
}
"""
MODES = {"towards zero": 1, "up": 2, "down": 3, "flush to zero": 4}


def setter_library(folder: Path) -> ctypes.CDLL:
    """The library, built in a folder: `foreign(mode)` sets one of :data:`MODES` (0: the default), `is_foreign()` asks."""
    (folder / "setter.c").write_text(SETTER)
    target = folder / "setter.so"
    subprocess.run(
        ["cc", "-O0", "-frounding-math", "-shared", "-fPIC", folder / "setter.c", "-o", target, "-lm"], check=True
    )
    return ctypes.CDLL(str(target))


POLLUTER = """
#include <omp.h>
int foreign(int mode);
int is_foreign(void);
/* the same state in all threads of OpenMP's pool; how many they are */
int foreign_everywhere(int mode, int threads)
{
    int count = 0;
#pragma omp parallel num_threads(threads) reduction(+ : count)
    {
        foreign(mode);
        count += mode == 0 || is_foreign();
    }
    return count;
}
int foreign_threads(int threads)
{
    int count = 0;
#pragma omp parallel num_threads(threads) reduction(+ : count)
    count += is_foreign();
    return count;
}
"""


def polluter_library(folder: Path) -> ctypes.CDLL:
    """Another OpenMP library in the process: it shares the pool of threads with ours, and leaves its state in them."""
    (folder / "polluter.c").write_text(SETTER + POLLUTER)
    target = folder / "polluter.so"
    built = subprocess.run(
        ["cc", "-O0", "-frounding-math", "-fopenmp", "-shared", "-fPIC", folder / "polluter.c", "-o", target, "-lm"]
    )
    if built.returncode:
        pytest.skip("cc does not take -fopenmp")
    return ctypes.CDLL(str(target))
