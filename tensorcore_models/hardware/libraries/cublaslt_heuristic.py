"""This command records the choices of cuBLASLt's heuristic on a GPU, for `mpgemm predict --recorded`.

    python -m tensorcore_models.hardware.libraries.cublaslt_heuristic --device h100 --format fp16 --out chosen.json \\
        --shape 1 4096 4096 --shape 64 4096 4096

It uses only the driver, libcublasLt and libcudart, through ctypes, and computes no product. Constants are those of cublasLt.h
and library_types.h (NVIDIA cuBLAS documentation, "Using the cuBLASLt API"). Operands are row-major; fp8 operands are passed as
torch passes them (columns of B contiguous), with device pointers for both scales. The library's choice depends on the workspace
that it may use.
"""

import argparse
import ctypes
import ctypes.util
import json
import sys
from typing import Any

from ...files import write_text
from ...libraries.cublaslt_tables import FIELDS
from ...libraries.recorded import FORMAT

#: Values of cudaDataType by format.
DATA_TYPES = {"fp32": 0, "fp16": 2, "bf16": 14, "e4m3fn": 28, "e5m2": 29}
COMPUTE_32F, SCALE_32F = 68, 0
TRANSPOSE_A, TRANSPOSE_B, SCALE_A, SCALE_B = 3, 4, 17, 18
LAYOUT_ORDER, ROW_MAJOR = 1, 1
MAX_WORKSPACE = 1
#: Fields of 16 bits; other fields have 32 bits.
SHORT_FIELDS = ("INNER_SHAPE_ID", "CLUSTER_SHAPE_ID")
#: CUBLAS_STATUS_NOT_SUPPORTED, which says that no kernel exists for the problem.
NOT_SUPPORTED = 15
DEFAULT_WORKSPACE = 32 * 2**20


class Heuristic(ctypes.Structure):
    """`Heuristic` is cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algo", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]  # fmt: skip


def _call(library: Any, name: str, *arguments: Any) -> None:
    status = getattr(library, name)(*arguments)
    if status:
        raise OSError(f"{name} returned status {status}, expected 0: see cublasStatus_t")


def load(name: str, path: str | None = None) -> ctypes.CDLL:
    """Return a shared library by path or by the linker's name; raises OSError if it cannot be loaded."""
    found = path or ctypes.util.find_library(name) or f"lib{name}.so"
    try:
        return ctypes.CDLL(found)
    except OSError as error:
        raise OSError(f"cannot load {found} ({error}): give the file with --{name.lower()}") from None


def version_of(lt: Any) -> str:
    """Return the version of the library as major.minor.patch."""
    lt.cublasLtGetVersion.restype = ctypes.c_size_t
    number = int(lt.cublasLtGetVersion())
    major = number // 10000 if number >= 100000 else number // 1000
    rest = number - major * (10000 if number >= 100000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


class Chooser:
    """`Chooser` asks the heuristic of a loaded libcublasLt on the current device.

    `scale_pointer` is the device address of an FP32 number, for the scales of fp8.
    """

    def __init__(self, lt: Any, workspace_bytes: int, scale_pointer: int = 0):
        self.lt, self.scale_pointer = lt, scale_pointer
        self.handle, self.preference = ctypes.c_void_p(), ctypes.c_void_p()
        _call(lt, "cublasLtCreate", ctypes.byref(self.handle))
        _call(lt, "cublasLtMatmulPreferenceCreate", ctypes.byref(self.preference))
        allowed = ctypes.byref(ctypes.c_uint64(workspace_bytes))
        setting = (self.preference, MAX_WORKSPACE, allowed, ctypes.c_size_t(8))
        _call(lt, "cublasLtMatmulPreferenceSetAttribute", *setting)

    def _layout(self, fmt: str, rows: int, columns: int, *, row_major: bool) -> ctypes.c_void_p:
        layout, lead = ctypes.c_void_p(), columns if row_major else rows
        sizes = (ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(lead))
        _call(self.lt, "cublasLtMatrixLayoutCreate", ctypes.byref(layout), DATA_TYPES[fmt], *sizes)
        if row_major:
            order = ctypes.byref(ctypes.c_int32(ROW_MAJOR))
            _call(self.lt, "cublasLtMatrixLayoutSetAttribute", layout, LAYOUT_ORDER, order, ctypes.c_size_t(4))
        return layout

    def config(self, m: int, k: int, n: int, fmt: str, out_format: str) -> dict[str, int | None] | None:
        """Return the heuristic's first configuration, None if the library has no kernel. Raises OSError."""
        lt, narrow = self.lt, fmt in ("e4m3fn", "e5m2")
        operation, layouts = ctypes.c_void_p(), []
        _call(lt, "cublasLtMatmulDescCreate", ctypes.byref(operation), COMPUTE_32F, SCALE_32F)
        try:
            settings: list[tuple[int, Any]] = [
                (TRANSPOSE_A, ctypes.c_int32(1 if narrow else 0)), (TRANSPOSE_B, ctypes.c_int32(0)),
            ]  # fmt: skip
            if narrow:
                settings += [(which, ctypes.c_void_p(self.scale_pointer)) for which in (SCALE_A, SCALE_B)]
            for attribute, value in settings:
                size = ctypes.c_size_t(ctypes.sizeof(value))
                _call(lt, "cublasLtMatmulDescSetAttribute", operation, attribute, ctypes.byref(value), size)
            layouts.append(
                self._layout(fmt, k, m, row_major=False) if narrow else self._layout(fmt, m, k, row_major=True)
            )
            layouts.append(self._layout(fmt, k, n, row_major=not narrow))
            layouts += [self._layout(out_format, m, n, row_major=True) for _ in range(2)]
            result, count = Heuristic(), ctypes.c_int(0)
            status = lt.cublasLtMatmulAlgoGetHeuristic(
                self.handle, operation, *layouts, self.preference, 1, ctypes.byref(result), ctypes.byref(count)
            )
            if status == NOT_SUPPORTED or (not status and not count.value):
                return None
            if status:
                raise OSError(
                    f"cublasLtMatmulAlgoGetHeuristic returned status {status}, expected 0: see cublasStatus_t"
                )
            return {name: self._field(result, number, name) for number, name in enumerate(FIELDS)}
        finally:
            for layout in layouts:
                lt.cublasLtMatrixLayoutDestroy(layout)
            lt.cublasLtMatmulDescDestroy(operation)

    def _field(self, result: Heuristic, number: int, name: str) -> int | None:
        value = ctypes.c_uint16(0) if name in SHORT_FIELDS else ctypes.c_int32(0)
        written = ctypes.c_size_t(0)
        size = ctypes.c_size_t(ctypes.sizeof(value))
        at = (ctypes.byref(result.algo), number, ctypes.byref(value), size, ctypes.byref(written))
        return None if self.lt.cublasLtMatmulAlgoConfigGetAttribute(*at) else int(value.value)


def record(chooser: Chooser, shapes, formats: list[tuple[str, str]]) -> list[dict]:
    """Return a record for every shape (m, k, n) in every pair of formats."""
    return [
        {"m": m, "k": k, "n": n, "format": fmt, "out_format": out, "config": chooser.config(m, k, n, fmt, out)}
        for fmt, out in formats
        for m, k, n in shapes
    ]


def device_scale(runtime: Any) -> int:
    """Return the device address of a newly allocated FP32 number."""
    pointer = ctypes.c_void_p()
    _call(runtime, "cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(4))
    return int(pointer.value or 0)


def main(argv: list[str] | None = None) -> int:
    """Record the choices; return 0, or 2 if the input is bad or a library cannot be used."""
    parser = argparse.ArgumentParser(description="Record the choices of cuBLASLt's heuristic on this GPU.")
    parser.add_argument("--device", required=True, help="name of the GPU in mpgemm: h100, b200, gb200, b300, gb300")
    parser.add_argument("--gpu", default="", help="full name of the GPU, for the record")
    parser.add_argument("--shape", nargs=3, type=int, action="append", required=True, metavar=("M", "K", "N"))
    parser.add_argument("--format", nargs="+", default=["fp16"], choices=["fp16", "bf16", "e4m3fn"])
    parser.add_argument(
        "--out-format", choices=["fp16", "bf16", "fp32"], help="default: the operands' format (fp8: bf16)"
    )
    parser.add_argument("--workspace", type=int, default=DEFAULT_WORKSPACE, help="bytes of workspace (default 32 MiB)")
    parser.add_argument("--cublaslt", metavar="FILE", help="path of libcublasLt.so")
    parser.add_argument("--cudart", metavar="FILE", help="path of libcudart.so")
    parser.add_argument("--out", required=True, metavar="FILE", help="JSON file for the choices")
    args = parser.parse_args(argv)
    try:
        lt, runtime = load("cublasLt", args.cublaslt), load("cudart", args.cudart)
        chooser = Chooser(lt, args.workspace, device_scale(runtime))
        formats = [(fmt, args.out_format or ("bf16" if fmt == "e4m3fn" else fmt)) for fmt in args.format]
        records = record(chooser, args.shape, formats)
        chosen = {
            "format": FORMAT, "device": args.device, "gpu": args.gpu, "cublaslt": version_of(lt),
            "workspace_bytes": args.workspace, "records": records,
        }  # fmt: skip
        write_text(args.out, json.dumps(chosen, indent=1) + "\n")
    except OSError as error:
        print(f"cublaslt_heuristic: {error}", file=sys.stderr)
        return 2
    print(f"{len(records)} choices in {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
