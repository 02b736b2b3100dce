"""Matrix instructions of this machine's CPU: which there are, and engines that run them or emulate them.

Instructions: VDPBF16PS and AMX on x86, BFMMLA on Arm. What an AMX unit needs beside the CPU's own support is that the operating
system saves its registers (XCR0) and grants them to the process (Linux: arch_prctl); :func:`status` asks for all of it.
"""

from .engines import CpuEngine, cpu_engine
from .qemu import QemuEngine
from .units import ENVIRONMENT, available, status, this_machine

__all__ = ["ENVIRONMENT", "CpuEngine", "QemuEngine", "available", "cpu_engine", "status", "this_machine"]
