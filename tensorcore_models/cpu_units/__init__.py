"""This package finds the matrix instructions of this machine's CPU, and makes engines that run or emulate them.

The instructions are VDPBF16PS and AMX on x86, and BFMMLA on Arm. An AMX unit needs support of the CPU, and an operating system
that saves its registers (XCR0) and grants them to the process (Linux: arch_prctl); :func:`status` checks all of these.
"""

from .engines import CpuEngine, cpu_engine
from .qemu import QemuEngine
from .units import ENVIRONMENT, available, status, this_machine

__all__ = ["ENVIRONMENT", "CpuEngine", "QemuEngine", "available", "cpu_engine", "status", "this_machine"]
