"""This module runs launches on a CUDA GPU through the driver API (by ctypes on libcuda)."""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np

from ...engines.instruction import Instruction
from .compiler import compile_source
from .group_source import wgmma_kernel
from .source import GEOMETRY, KERNEL_NAME, CudaKernel, mma_kernel, wmma_kernel
from .targets import TARGETS, architecture_of, target_of
from .tcgen05_source import tcgen05_kernel

GENERATORS: dict[str, Callable[[Instruction, str | None], CudaKernel]] = {
    "mma": mma_kernel,
    "wmma": wmma_kernel,
    "wgmma": wgmma_kernel,
    "tcgen05": tcgen05_kernel,
}


def kernel(row: Instruction, target: str | None = None) -> CudaKernel:
    """Return the CUDA kernel of a row for a compilation target, by default that of its architecture.

    Raises ValueError for a row without generated kernel.
    """
    if row.arch not in TARGETS or row.path not in GENERATORS:
        raise ValueError(f"{row} has no CUDA kernel, expected an NVIDIA instruction of {', '.join(GENERATORS)}")
    return GENERATORS[row.path](row, target)


@dataclass(frozen=True)
class Launch:
    """`Launch` is one run of an instruction over a grid of tiles; `geometry` gives the strides, and d is laid out like c."""

    row: Instruction
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    scale_a: np.ndarray | None
    scale_b: np.ndarray | None
    d_shape: tuple[int, ...]
    geometry: Mapping[str, int]


class Device(Protocol):
    """`Device` lists the parts of a GPU that an engine needs; tests use a software model instead."""

    name: str
    driver: str
    arch: str

    def run(self, launch: Launch) -> np.ndarray:
        """Run a launch, and return the encodings of d."""
        ...


class _Geometry(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in GEOMETRY]


#: Device attributes of the driver API (cuda.h, CUdevice_attribute).
_CAPABILITY_MAJOR, _CAPABILITY_MINOR, _MULTIPROCESSORS = 75, 76, 16
BLOCKS_PER_MULTIPROCESSOR = 16


def blocks_of(made: CudaKernel, tiles: int, multiprocessors: int) -> int:
    """Return the number of blocks of a launch, in whole clusters: enough for the tiles, but at most what keeps the GPU busy."""
    wanted = -(-tiles // made.tiles_per_block)
    return max(1, min(wanted, multiprocessors * BLOCKS_PER_MULTIPROCESSOR // made.cluster)) * made.cluster


@dataclass
class CudaDevice:
    """`CudaDevice` is the CUDA GPU number `ordinal`.

    Raises OSError without a CUDA driver, RuntimeError if the driver finds no such GPU.
    """

    ordinal: int = 0
    _functions: dict = field(default_factory=dict, repr=False)

    def __post_init__(self):
        self._cuda = _load_driver()
        self._call("cuInit", 0)
        handle = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(handle), self.ordinal)
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), handle)
        self._call("cuCtxSetCurrent", self._context)
        text = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", text, 256, handle)
        self.name = text.value.decode()
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        self.driver = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}{_kernel_driver()}"
        self.capability = (self._attribute(_CAPABILITY_MAJOR, handle), self._attribute(_CAPABILITY_MINOR, handle))
        self.multiprocessors = self._attribute(_MULTIPROCESSORS, handle)
        self.arch = architecture_of(self.capability)

    def _attribute(self, number: int, handle: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, handle)
        return value.value

    def _call(self, name: str, *arguments) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(code, ctypes.byref(text))
            said = text.value.decode() if text.value else f"error {code}"
            raise RuntimeError(f"{name}: {said}")

    def _function(self, row: Instruction):
        if row not in self._functions:
            target = target_of(row.arch, self.capability)
            made = kernel(row, target)
            image = compile_source(made.source, target)
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self._call("cuModuleLoadData", ctypes.byref(module), image)
            self._call("cuModuleGetFunction", ctypes.byref(function), module, KERNEL_NAME.encode())
            self._functions[row] = made, module, function
        made, _, function = self._functions[row]
        return made, function

    def _upload(self, array: np.ndarray, held: list) -> ctypes.c_uint64:
        array = np.ascontiguousarray(array)
        pointer = self._allocate(array.nbytes, held)
        self._call("cuMemcpyHtoD_v2", pointer, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return pointer

    def _allocate(self, size: int, held: list) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 256)))
        held.append(pointer)
        return pointer

    def run(self, launch: Launch) -> np.ndarray:
        """Run a launch, wait for it, and return the encodings of d.

        Raises RuntimeError if the driver fails, or if the instruction is of another architecture.
        """
        if launch.row.arch != self.arch:
            raise RuntimeError(f"{launch.row} needs GPU architecture {launch.row.arch}, {self.name} is {self.arch}")
        self._call("cuCtxSetCurrent", self._context)
        made, function = self._function(launch.row)
        d = np.empty(launch.d_shape, launch.row.formats[3].container)
        held: list[ctypes.c_uint64] = []
        try:
            a, b, c = (self._upload(x, held) for x in (launch.a, launch.b, launch.c))
            d_pointer = self._allocate(d.nbytes, held)
            scales = [
                ctypes.c_uint64() if x is None else self._upload(x, held) for x in (launch.scale_a, launch.scale_b)
            ]
            geometry = _Geometry(**launch.geometry)
            parameters = [a, b, c, d_pointer, *scales, geometry]
            pointers = (ctypes.c_void_p * len(parameters))(*(ctypes.addressof(p) for p in parameters))
            blocks = blocks_of(made, launch.geometry["tiles"], self.multiprocessors)
            self._call("cuLaunchKernel", function, blocks, 1, 1, made.threads, 1, 1, 0, None, pointers, None)
            self._call("cuCtxSynchronize")
            self._call("cuMemcpyDtoH_v2", d.ctypes.data_as(ctypes.c_void_p), d_pointer, ctypes.c_size_t(d.nbytes))
        finally:
            for pointer in held:
                self._cuda.cuMemFree_v2(pointer)
        return d


def _load_driver() -> ctypes.CDLL:
    for name in ("libcuda.so.1", "libcuda.so", "nvcuda.dll"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError("no CUDA driver on this machine (libcuda.so.1 not found): install an NVIDIA GPU and its driver")


def _kernel_driver() -> str:
    """Return the version of the kernel driver as text, empty if Linux does not report it."""
    try:
        with open("/proc/driver/nvidia/version") as file:
            words = file.readline().split()
    except OSError:
        return ""
    numbers = [word for word in words if word[:1].isdigit() and "." in word]
    return f", driver {numbers[0]}" if numbers else ""


@cache
def default_device() -> CudaDevice:
    """Return the first GPU of this machine; raises OSError without a driver, RuntimeError without a GPU."""
    return CudaDevice()
