"""Triton's dots on emulated matrix units, in its interpreter.

What is assumed, since the interpreter does not know the compiler's choices: a dot runs as one chain of the instruction's
steps over its k, which starts from the accumulator. ``input_precision`` of FP32 operands: "ieee" is a chain of fused
multiply-adds; for "tf32" the unit ignores the low 13 bits of each operand (Triton passes them as they are); "tf32x3", "bf16x3"
and "bf16x6" multiply words in the order of kernels that Triton 3.9 compiled (`_WORDS`): each dot from zero, NaN made 0 before
the last product, the accumulator added outside. Conversions to bf16 round to nearest even, as a GPU's; the interpreter cuts.
FP8 on Hopper: with ``max_num_imprecise_acc`` of at most k, chains of that many products (in whole steps) restart from zero and
are added outside in FP32; its default there is 2^30, never.
"""

import dataclasses
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter

import tensorcore_models as tcm
from mpgemm.frameworks.call_log import CallLog, Report, Site
from mpgemm.frameworks.multiplier import Multiplier
from tensorcore_models.catalogue.devices import DEVICES
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.formats import get_float_format

#: Triton's names of types: formats, and the numpy type of the interpreter's encodings.
FORMATS = {
    "fp64": ("fp64", np.dtype(np.float64)),
    "fp32": ("fp32", np.dtype(np.float32)),
    "fp16": ("fp16", np.dtype(np.float16)),
    "bf16": ("bf16", np.dtype(ml_dtypes.bfloat16)),
    "fp8e4nv": ("e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn)),
    "fp8e5": ("e5m2", np.dtype(ml_dtypes.float8_e5m2)),
    "fp8e4b8": ("e4m3fnuz", np.dtype(ml_dtypes.float8_e4m3fnuz)),
    "fp8e5b16": ("e5m2fnuz", np.dtype(ml_dtypes.float8_e5m2fnuz)),
    "int8": ("s8", np.dtype(np.int8)),
}
FP8 = ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")
#: Largest k of a chain on Hopper's FP8 units where a kernel names none.
HOPPER_DEFAULT = 2**30


#: Products of words of FP32 operands: format of the words, and which are multiplied, in order (word of A, word of B).
_WORDS = {
    "tf32x3": ("tf32", ((1, 0), (0, 1), (0, 0))),
    "bf16x3": ("bf16", ((1, 0), (0, 1), (0, 0))),
    "bf16x6": ("bf16", ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0))),
}


class TritonEmulation:
    """Dots on an engine; made by :func:`emulate`."""

    def __init__(self, target: Multiplier):
        self.target = target
        engine = target.engine
        arch = engine.arch if isinstance(engine, Instruction) else DEVICES.get(target.device, (target.device,))[0]
        self.hopper = arch == "hopper"
        self._log = CallLog([target.name])

    def report(self) -> Report:
        """Which instruction and order each dot of a kernel ran on so far."""
        return self._log.report()

    def dot(self, a, b, d, input_precision, max_num_imprecise_acc: int):
        """What the interpreter calls for `tl.dot`: A B + D."""
        (fmt_a, x), (fmt_b, y), (fmt_d, c) = (_values(handle) for handle in (a, b, d))
        precision = str(input_precision).rpartition(".")[2].lower()
        if fmt_a == "fp32" and precision in _WORDS:
            run, engine, order = self._words(precision)
        else:
            run, engine, order = self._chain(fmt_a, fmt_b, fmt_d, precision, max_num_imprecise_acc, x.shape[-1])
        result = _batched(run, x, y, c)
        self._note("tl.dot", x, y, f"{fmt_a} x {fmt_b} + {fmt_d}", engine, order)
        return interpreter.TensorHandle(result.astype(c.dtype, copy=False).view(d.data.dtype), d.dtype.scalar)

    def _chain(self, fmt_a: str, fmt_b: str, fmt_d: str, precision: str, imprecise: int, k: int):
        """(function of a, b and c, engine, order) of one chain."""
        if fmt_a == "fp32" and precision not in ("ieee", "tf32"):
            known = ", ".join(("ieee", "tf32", *_WORDS))
            raise ValueError(f"input_precision {precision!r} is not emulated; use one of {known}")
        unit = {"tf32": "tf32"}.get(precision, "fp32") if fmt_a == "fp32" else fmt_a
        engine = self.target.engine_for(unit, unit if fmt_a == "fp32" else fmt_b, fmt_d)
        options: dict = {"k_order": self.target.k_order, "promote_every": self.target.promote_every}
        order = "one chain from the accumulator" if options["k_order"] == "sequential" else str(options["k_order"])
        if self.hopper and fmt_a in FP8 and fmt_d == "fp32" and imprecise <= k:
            options["promote_every"] = max(-(-imprecise // engine.k), 1) * engine.k
        if options["promote_every"] is not None:
            order += f", promoted every {options['promote_every']}"
        rounding = self.target.input_rounding or ("rz" if unit == "tf32" else None)

        def run(a, b, c):
            return engine.gemm(a, b, c, input_rounding=rounding, **options)

        return run, engine, order

    def _words(self, precision: str):
        """(function of a, b and c, engine, order) of a product of words, as Triton 3.9 compiles it."""
        fmt, pairs = _WORDS[precision]
        engine, count = self.target.engine_for(fmt, fmt), 1 + max(map(max, pairs))

        def run(a, b, c):
            left, right = _words_of(a, fmt, count), _words_of(b, fmt, count)
            total = np.zeros_like(c)
            for i, j in pairs:
                if (i, j) == (0, 0):
                    total = np.where(np.isnan(total), np.float32(0), total)
                total = engine.gemm(left[i], right[j], total, input_rounding="rz")
            return c + total

        spelled = ", ".join(f"{i}{j}" for i, j in pairs)
        return (
            run,
            engine,
            f"{precision}: words {spelled} (0 is the largest) in one chain from 0, the accumulator added outside",
        )

    def scaled_dot(self, a, scale_a, format_a, b, scale_b, format_b, fast_math, a_k_pack, b_k_pack, d):
        """What the interpreter calls for `tl.dot_scaled`: (A scaled) (B scaled) + D."""
        left = _scaled_operand(a, scale_a, format_a, axis=-1, packed=-1 if a_k_pack else -2)
        right = _scaled_operand(b, scale_b, format_b, axis=-2, packed=-2 if b_k_pack else -1)
        c = _values(d)[1]
        engine = self._block_scaled_engine(left, right)
        if engine is None:
            engine = self.target.engine_for("bf16", "bf16")
            order = "operands times scales rounded to bf16, one chain from the accumulator"
            x, y = left.as_bf16(), right.as_bf16()
            result = _batched(lambda p, q, r: engine.gemm(p, q, r), x, y, c)
        else:
            order = "one chain from the accumulator, scales inside of the unit"
            x, y = left.values, right.values
            scales = left.scale_bits(engine), right.scale_bits(engine)

            def run(p, q, r, sp, sq, unit=engine):
                return unit.gemm(p, q, r, scale_a=sp, scale_b=sq)

            result = _batched(run, x, y, c, *scales)
        self._note("tl.dot_scaled", x, y, f"{left.format} x {right.format} + fp32", engine, order)
        return interpreter.TensorHandle(result, tl.float32)

    def _block_scaled_engine(self, left: "_Scaled", right: "_Scaled") -> Engine | None:
        """The device's block-scaled instruction for these operands, None where it has none."""
        blocks = {x.block for x in (left, right) if x.block is not None}
        scales = {x.scale_format for x in (left, right) if x.block is not None}
        wanted = (left.format, right.format, *scales, *blocks)
        if self.target.engine is not None:
            unit = self.target.engine
            return unit if (unit.a_format, unit.b_format, unit.scale_format, unit.block_size) == wanted else None
        if self.target.device == "ieee":
            return None
        rows = [
            row
            for row in tcm.list_instructions(self.target.device)
            if (row.a_format, row.b_format, row.scale_format, row.block_size) == wanted
            and self.target.path in (None, row.path)
        ]
        return max(rows, key=lambda row: row.k, default=None)

    def _note(self, op: str, a, b, formats: str, engine: Engine, order: str) -> None:
        batch = a.shape[0] if a.ndim == 3 else 1
        sizes = a.shape[-2], a.shape[-1], b.shape[-1]
        site = Site(_kernel_line(), "forward", op, batch, *sizes, formats, (engine.label,), (order,))
        self._log.add(site, batch * sizes[0] * sizes[2])


@dataclasses.dataclass
class _Scaled:
    """An operand of `tl.dot_scaled`: values, and scales as encodings with blocks along `axis`, the axis of k."""

    format: str
    values: np.ndarray
    axis: int
    scale_format: str
    scales: np.ndarray | None

    @property
    def block(self) -> int | None:
        """Elements that share a scale."""
        return None if self.scales is None else self.values.shape[self.axis] // self.scales.shape[self.axis]

    def scale_bits(self, engine: Engine) -> np.ndarray:
        """Encodings of the scales; ones if none are given."""
        if self.scales is not None:
            return self.scales
        shape = list(self.values.shape)
        shape[self.axis] //= engine.block_size or 1
        return np.full(shape, tcm.encode(1.0, get_float_format(engine.scale_format or "ue8m0")), np.uint8)

    def as_bf16(self) -> np.ndarray:
        """Elements times scales, rounded to bf16."""
        values = self.values.astype(np.float64)
        if self.scales is not None and self.block is not None:
            values = values * np.repeat(tcm.decode(self.scales, self.scale_format), self.block, self.axis)
        return np.asarray(tcm.encode(values, "bf16")).view(ml_dtypes.bfloat16)


def _scaled_operand(handle, scale, kind, axis: int, packed: int) -> _Scaled:
    name = str(kind).rpartition(".")[2].lower()
    if name == "e2m1":
        bits = np.stack([handle.data & 0xF, handle.data >> 4], packed + handle.data.ndim + 1)
        shape = list(handle.data.shape)
        shape[packed] *= 2
        values, fmt = bits.reshape(shape).view(ml_dtypes.float4_e2m1fn), "e2m1"
    else:
        fmt, values = _values(handle)
    if scale is None:
        return _Scaled(fmt, values, axis, "ue8m0", None)
    bits = scale.data.view(np.uint8)  # (rows of A or columns of B, blocks)
    scale_format = "ue4m3" if str(scale.dtype.scalar) == "fp8e4nv" else "ue8m0"
    return _Scaled(fmt, values, axis, scale_format, bits if axis == -1 else np.swapaxes(bits, -1, -2))


def _words_of(x: np.ndarray, fmt: str, count: int) -> list[np.ndarray]:
    """x as a sum of words: tf32's first is rounded half away and the rest left to the unit, which cuts; bf16's to nearest."""
    found = []
    for _ in range(count - 1):
        found.append(tcm.round_to(x, fmt, "rna" if fmt == "tf32" else "rne").astype(np.float32))
        x = x - found[-1]
    return [*found, x if fmt == "tf32" else tcm.round_to(x, fmt).astype(np.float32)]


def _values(handle) -> tuple[str, np.ndarray]:
    """(format, values) of a tensor of the interpreter, which keeps bf16 and FP8 as unsigned integers."""
    name = str(handle.dtype.scalar)
    if name == "int32":
        return "s32", handle.data
    if name not in FORMATS:
        raise ValueError(f"a dot of {name} is not emulated; types: {', '.join(FORMATS)}")
    fmt, dtype = FORMATS[name]
    return fmt, handle.data.view(dtype)


def _batched(run, a: np.ndarray, b: np.ndarray, c: np.ndarray, *scales) -> np.ndarray:
    """`run` on matrices, or on each of a batch of them."""
    if a.ndim == 2:
        return run(a, b, c, *scales)
    return np.stack([run(*each) for each in zip(a, b, c, *scales, strict=True)])


def _truncf(source, target):
    """A conversion to a narrower type: the interpreter cuts bf16 off, a GPU rounds to nearest even."""
    if target.scalar == tl.bfloat16:
        bits = np.asarray(tcm.encode(_values(source)[1], "bf16"))
        return interpreter.TensorHandle(bits, target.scalar)
    return interpreter.interpreter_builder.cast_impl(source, target)


def _kernel_line() -> str:
    """Name and line of the kernel that called a dot: the innermost frame outside of Triton and of this file."""
    folders = str(Path(triton.__file__).parent), __file__
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(folders):
        frame = frame.f_back
    return "(outside of kernels)" if frame is None else f"{frame.f_code.co_name}, line {frame.f_lineno}"


def _check_interpreter(module: ModuleType) -> None:
    knobs = getattr(getattr(module, "knobs", None), "runtime", None)
    if knobs is not None and not knobs.interpret:
        raise ValueError(
            "Triton's interpreter is off, so its dots are compiled for a GPU: set TRITON_INTERPRET=1 before kernels are defined"
        )


@contextmanager
def emulate(
    engine, *, k_order="sequential", promote_every: int | None = None, input_rounding: str | None = None
) -> Iterator[TritonEmulation]:
    """Run `tl.dot` and `tl.dot_scaled` of interpreted kernels on emulated matrix units.

    Parameters
    ----------
    engine : str or Engine
        A device ("h100"; "h100/mma" for kernels that Triton compiles to mma.sync), an instruction "arch:name", or an engine.
    k_order, promote_every : optional
        Instead of one chain over the k of a dot; as for :meth:`tensorcore_models.Instruction.gemm`.
    input_rounding : str, optional
        How values are rounded that an operand format lacks. TF32: cut ("rz") by default, as the unit ignores the low bits.

    Yields
    ------
    TritonEmulation
        Its `report()` says on which instruction and in which order each dot ran.

    Raises
    ------
    ValueError, TypeError
        If there is no such engine, or Triton does not interpret. Inside of the block: for types and precisions that the engine
        does not take.
    """
    _check_interpreter(triton)
    target = Multiplier(engine, k_order=k_order, promote_every=promote_every, input_rounding=input_rounding)
    run, builder = TritonEmulation(target), interpreter.interpreter_builder
    options = builder.options
    default = HOPPER_DEFAULT if run.hopper else options.max_num_imprecise_acc_default
    precisions = tuple(dict.fromkeys((*options.allowed_dot_input_precisions, *_WORDS)))
    builder.options = dataclasses.replace(
        options, max_num_imprecise_acc_default=default, allowed_dot_input_precisions=precisions
    )
    builder.create_dot, builder.create_dot_scaled, builder.create_fp_trunc = run.dot, run.scaled_dot, _truncf
    try:
        yield run
    finally:
        builder.options = options
        del builder.create_dot, builder.create_dot_scaled, builder.create_fp_trunc
