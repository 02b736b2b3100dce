"""This module compiles CUDA C++ to machine code at run time, through NVRTC (by ctypes) or else through nvcc."""

import ctypes
import ctypes.util
import glob
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

MISSING = (
    "no CUDA compiler found: install the NVRTC library (libnvrtc, in the CUDA toolkit or the package "
    "nvidia-cuda-nvrtc), or put nvcc on PATH"
)


def _nvrtc_candidates() -> list[str]:
    found = [ctypes.util.find_library("nvrtc")]
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    patterns = [f"{root}/lib64/libnvrtc.so*" for root in roots if root]
    patterns += [f"{path}/nvidia/*/lib/libnvrtc.so*" for path in sys.path if path]
    for pattern in patterns:
        found += sorted(path for path in glob.glob(pattern) if "builtins" not in path)
    return [path for path in found if path]


@cache
def _nvrtc() -> ctypes.CDLL | None:
    for path in _nvrtc_candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def _compile_nvrtc(library: ctypes.CDLL, source: str, target: str) -> bytes:
    program = ctypes.c_void_p()
    _check_nvrtc(
        library, library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    )
    try:
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={target}".encode())
        if library.nvrtcCompileProgram(program, 1, options):
            size = ctypes.c_size_t()
            library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"NVRTC did not compile the kernel for {target}:\n{log.value.decode(errors='replace')}")
        size = ctypes.c_size_t()
        _check_nvrtc(library, library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        image = ctypes.create_string_buffer(size.value)
        _check_nvrtc(library, library.nvrtcGetCUBIN(program, image))
        return image.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _check_nvrtc(library: ctypes.CDLL, code: int) -> None:
    if code:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"NVRTC: {library.nvrtcGetErrorString(code).decode()}")


def compile_nvcc(source: str, target: str, nvcc: str = "nvcc") -> bytes:
    """Return the machine code of a kernel from nvcc; raises RuntimeError with nvcc's messages if it fails."""
    number = target.removeprefix("sm_")
    with tempfile.TemporaryDirectory() as folder:
        path, image = Path(folder) / "kernel.cu", Path(folder) / "kernel.cubin"
        path.write_text(source)
        command = [nvcc, "-cubin", f"-gencode=arch=compute_{number},code={target}", "-o", str(image), str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"nvcc did not compile the kernel for {target}:\n{done.stdout}{done.stderr}")
        return image.read_bytes()


@cache
def compile_source(source: str, target: str) -> bytes:
    """Return the machine code (cubin) of CUDA C++ source without includes, for a target such as "sm_90a".

    Raises OSError without a compiler, RuntimeError if the source does not compile.
    """
    library = _nvrtc()
    if library is not None:
        return _compile_nvrtc(library, source, target)
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise OSError(MISSING)
    return compile_nvcc(source, target, nvcc)
