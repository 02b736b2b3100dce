"""Runs the dots of Triton kernels on emulated matrix units, in Triton's interpreter.

Triton's compiler, which needs no GPU, compiles the same kernel for the target; its output shows which additions it folds into a
dot's accumulator, which words it multiplies, and which instruction it takes (`triton_code`). If it cannot run, rules of Triton
3.9 apply. The report says which of the two applied. The rules are:

- A dot is one chain of the instruction's steps over its k, which starts from the accumulator.
- FP32 operands with ``input_precision`` "ieee" are a chain of fused multiply-adds. With "tf32" the unit ignores the low 13 bits
  of each operand, which Triton passes unchanged. "tf32x3", "bf16x3" and "bf16x6" multiply words in the order of kernels that
  Triton 3.9 compiled (`_WORDS`): each dot starts from zero, NaN becomes 0 before the last product, and the accumulator is added
  outside.
- If a dot has no accumulator and no `max_num_imprecise_acc`, an addition to its result becomes its accumulator.
- Conversions to bf16 round to nearest even, as on a GPU; the interpreter alone would truncate.
- FP8 on Hopper with ``max_num_imprecise_acc`` of at most k: chains of that many products (in whole steps) restart from zero and
  are added outside in FP32. The default there is 2^30, which never restarts.
"""

import dataclasses
import inspect
import linecache
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter

import tensorcore_models as tcm
from mpgemm.frameworks.call_log import CallLog, Report, Site
from mpgemm.frameworks.multiplier import Multiplier
from mpgemm.frameworks.triton_code import DotCode, Position, dot_code, instruction_name, interleaved
from mpgemm.frameworks.triton_compiled import TARGETS, NotCompiled, compile_kernel
from tensorcore_models.catalogue.devices import DEVICES
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.formats import get_float_format

#: Formats, and NumPy types of the interpreter's encodings, by Triton's names of types.
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
#: Default length of a chain on Hopper's FP8 units.
HOPPER_DEFAULT = 2**30


#: Products of words of FP32 operands: format of the words, and pairs (word of A, word of B) in order.
_WORDS = {
    "tf32x3": ("tf32", ((1, 0), (0, 1), (0, 0))),
    "bf16x3": ("bf16", ((1, 0), (0, 1), (0, 0))),
    "bf16x6": ("bf16", ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0))),
}


#: Number of neighbours along k of FP8 operands that a thread holds.
_FP8_WIDTH = 4
#: Version of Triton whose rules apply if the compiler cannot run.
RULES = "3.9"
COMPILERS = ("auto", "ask", "rules")


class TritonEmulation:
    """`TritonEmulation` runs dots on an engine; :func:`emulate` makes it."""

    def __init__(self, target: Multiplier, compiler: str):
        self.target, self.compiler = target, compiler
        engine = target.engine
        self.arch = engine.arch if isinstance(engine, Instruction) else DEVICES.get(target.device, (target.device,))[0]
        self.hopper = self.arch == "hopper"
        self._log = CallLog([target.name])
        self._code: DotCode | None = None
        self._why = "no kernel was launched"
        self._from_zero = False

    def report(self) -> Report:
        """Return the report of the dots so far: instruction, order, and whether the compiler or a rule determined them."""
        return self._log.report()

    def launched(self, kernel, arguments: tuple, options: dict) -> None:
        """Compile a kernel that starts, and keep the compiler's output for its dots."""
        self._code, self._why = None, "not asked"
        if self.compiler == "rules":
            return
        try:
            if self.arch not in TARGETS:
                raise NotCompiled(f"Triton has no target for {self.target.name}, only for {', '.join(TARGETS)}")
            self._code = dot_code(compile_kernel(kernel, arguments, options, TARGETS[self.arch]))
        except NotCompiled as refused:
            if self.compiler == "ask":
                raise
            self._why = str(refused)

    def _origin(self) -> str:
        if self._code is not None:
            return f" [compiled: {self._code.label}]"
        known = "" if triton.__version__.startswith(f"{RULES}.") else f", not checked for {triton.__version__}"
        return f" [rules of Triton {RULES}{known}; the compiler: {self._why}]"

    def started_from(self, accumulator) -> None:
        """Note the accumulator that the source gives to the next dot."""
        self._from_zero = accumulator is None

    def dot(self, a, b, d, input_precision, max_num_imprecise_acc: int):
        """Compute A B + D, for the interpreter's `tl.dot`."""
        at = _position()
        if self._code is not None:
            max_num_imprecise_acc = self._code.imprecise.get(at, max_num_imprecise_acc) if at else max_num_imprecise_acc
        from_zero, self._from_zero = self._from_zero, False

        def added(c, note: str = ""):
            return self._multiplied(at, a, b, c, input_precision, max_num_imprecise_acc, note)

        result = added(d)
        if self._foldable(at, d, from_zero, max_num_imprecise_acc):
            result.as_accumulator = lambda c: added(c, ", the addition after it as its accumulator")
        return result

    def _foldable(self, at: Position | None, d, from_zero: bool, imprecise: int) -> bool:
        """Return whether an addition to a dot's result may become its accumulator; `from_zero`: the source gave it none."""
        if self._code is None:
            return from_zero and imprecise == 0
        return at in self._code.dots and not (_values(d)[1] != 0).any()

    def add(self, left, right):
        """Add for the interpreter; an addition that the compiler folds becomes the accumulator of its dot."""
        for dot, other in ((left, right), (right, left)):
            run = getattr(dot, "as_accumulator", None)
            same = run is not None and other.data.shape == dot.data.shape
            if same and (self._code is None or _position() in self._code.folded):
                return run(other)
        builder = interpreter.interpreter_builder
        return type(builder).create_fadd(builder, left, right)

    def _multiplied(self, at: Position | None, a, b, d, input_precision, imprecise: int, note: str):
        (fmt_a, x), (fmt_b, y), (fmt_d, c) = (_values(handle) for handle in (a, b, d))
        precision = str(input_precision).rpartition(".")[2].lower()
        if fmt_a == "fp32" and precision in _WORDS:
            run, engine, order = self._words(precision, at)
        else:
            run, engine, order = self._chain(fmt_a, fmt_b, fmt_d, precision, imprecise, x.shape[-1], at)
        result = _batched(run, x, y, c)
        self._note("tl.dot", x, y, f"{fmt_a} x {fmt_b} + {fmt_d}", engine, order + note + self._origin())
        return interpreter.TensorHandle(result.astype(c.dtype, copy=False).view(d.data.dtype), d.dtype.scalar)

    def _engine(self, fmt_a: str, fmt_b: str, fmt_d: str, at: Position | None) -> Engine:
        """Return the engine of the user, else the instruction that the compiler took, else the device's for these formats."""
        named = self.target.engine is not None or self.target.path is not None
        opcodes = () if self._code is None or named or at is None else self._code.instructions.get(at, ())
        names = {instruction_name(opcode, fmt_a, fmt_b, fmt_d) for opcode in opcodes}
        if len(names) == 1 and (name := names.pop()) is not None:
            try:
                return tcm.get_instruction(self.target.device, name)
            except ValueError:  # the catalogue lacks it, so the device's default is taken, which the report names
                pass
        return self.target.engine_for(fmt_a, fmt_b, fmt_d)

    def _chain(self, fmt_a: str, fmt_b: str, fmt_d: str, precision: str, imprecise: int, k: int, at: Position | None):
        """Return the function of a, b and c, the engine and the order of one chain."""
        if fmt_a == "fp32" and precision not in ("ieee", "tf32"):
            known = ", ".join(("ieee", "tf32", *_WORDS))
            raise ValueError(f"input_precision is {precision!r}, expected one of {known}")
        unit = {"tf32": "tf32"}.get(precision, "fp32") if fmt_a == "fp32" else fmt_a
        engine = self._engine(unit, unit if fmt_a == "fp32" else fmt_b, fmt_d, at)
        if self._code is None and self.hopper and unit in FP8 and imprecise == 0 and self.target.engine is None:
            engine = self.target.engine_for("fp16", "fp16", fmt_d)
        options: dict = {"k_order": self.target.k_order, "promote_every": self.target.promote_every}
        order = "one chain from the accumulator" if options["k_order"] == "sequential" else str(options["k_order"])
        if self.hopper and engine.a_format in FP8 and fmt_d == "fp32" and imprecise <= k:
            options["promote_every"] = max(-(-imprecise // engine.k), 1) * engine.k
        if options["promote_every"] is not None:
            order += f", promoted every {options['promote_every']}"
        rounding = self.target.input_rounding or ("rz" if unit == "tf32" else None)
        widened, ks = unit in FP8 and engine.a_format == "fp16", None
        if widened:
            width = _FP8_WIDTH if self._code is None or at is None else self._code.widths.get(at, 2)
            ks = interleaved(k, width, 2, engine.k)
            order += ", operands widened to fp16" + (", k interleaved in pairs" if ks else "")

        def run(a, b, c):
            if widened:  # exactly, because FP16 holds all numbers of FP8
                a, b = a.astype(np.float16), b.astype(np.float16)
            if ks is not None:
                a, b = a[:, ks], b[ks]
            return engine.gemm(a, b, c, input_rounding=rounding, **options)

        return run, engine, order

    def _words(self, precision: str, at: Position | None):
        """Return the function of a, b and c, the engine and the order of a product of words."""
        fmt, pairs = _WORDS[precision]
        if self._code is not None and at is not None:
            pairs = self._code.words.get(at, pairs)
        engine, count = self._engine(fmt, fmt, "fp32", at), 1 + max(map(max, pairs))

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
        """Compute the product of A and B with scales, plus D, for the interpreter's `tl.dot_scaled`."""
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
        """Return the device's block-scaled instruction for these operands, or None if it has none."""
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
    """`_Scaled` is an operand of `tl.dot_scaled`: values, and encodings of scales with blocks along `axis`, the axis of k."""

    format: str
    values: np.ndarray
    axis: int
    scale_format: str
    scales: np.ndarray | None

    @property
    def block(self) -> int | None:
        """Number of elements that share a scale."""
        return None if self.scales is None else self.values.shape[self.axis] // self.scales.shape[self.axis]

    def scale_bits(self, engine: Engine) -> np.ndarray:
        """Return the encodings of the scales, or those of 1 if none are given."""
        if self.scales is not None:
            return self.scales
        shape = list(self.values.shape)
        shape[self.axis] //= engine.block_size or 1
        return np.full(shape, tcm.encode(1.0, get_float_format(engine.scale_format or "ue8m0")), np.uint8)

    def as_bf16(self) -> np.ndarray:
        """Return the elements times their scales, rounded to bf16."""
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
    """Split x into words. bf16 rounds to nearest; the first word of tf32 rounds half away, and the unit truncates the rest."""
    found = []
    for _ in range(count - 1):
        found.append(tcm.round_to(x, fmt, "rna" if fmt == "tf32" else "rne").astype(np.float32))
        x = x - found[-1]
    return [*found, x if fmt == "tf32" else tcm.round_to(x, fmt).astype(np.float32)]


def _values(handle) -> tuple[str, np.ndarray]:
    """Return format and values of an interpreter's tensor, in which bf16 and FP8 are unsigned integers."""
    name = str(handle.dtype.scalar)
    if name == "int32":
        return "s32", handle.data
    if name not in FORMATS:
        raise ValueError(f"tl.dot got {name}, expected one of {', '.join(FORMATS)}: convert the operand with .to()")
    fmt, dtype = FORMATS[name]
    return fmt, handle.data.view(dtype)


def _batched(run, a: np.ndarray, b: np.ndarray, c: np.ndarray, *scales) -> np.ndarray:
    """Apply `run` to matrices, or to each matrix of a batch."""
    if a.ndim == 2:
        return run(a, b, c, *scales)
    return np.stack([run(*each) for each in zip(a, b, c, *scales, strict=True)])


def _truncf(source, target):
    """Convert to a narrower type as a GPU does: bf16 is rounded to nearest even, while the interpreter would truncate."""
    if target.scalar == tl.bfloat16:
        bits = np.asarray(tcm.encode(_values(source)[1], "bf16"))
        return interpreter.TensorHandle(bits, target.scalar)
    return interpreter.interpreter_builder.cast_impl(source, target)


def _kernel_frame() -> FrameType | None:
    """Return the innermost frame outside of Triton and of this file."""
    folders = str(Path(triton.__file__).parent), __file__
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(folders):
        frame = frame.f_back
    return frame


def _kernel_line() -> str:
    """Return name and line of the kernel that called a dot."""
    frame = _kernel_frame()
    return "(outside of kernels)" if frame is None else f"{frame.f_code.co_name}, line {frame.f_lineno}"


def _position() -> Position | None:
    """Return the kernel's current position as the compiler names it; the interpreter runs the source without indentation."""
    frame = _kernel_frame()
    if frame is None:
        return None
    code = frame.f_code
    line, _, column, _ = list(code.co_positions())[frame.f_lasti // 2]
    if line is None or column is None:
        return None
    first = linecache.getline(code.co_filename, code.co_firstlineno)
    indented = re.match(r"\s*", first)
    return Path(code.co_filename).name, line, column + 1 + (len(indented[0]) if indented else 0)


def _check_interpreter(module: ModuleType) -> None:
    knobs = getattr(getattr(module, "knobs", None), "runtime", None)
    if knobs is not None and not knobs.interpret:
        raise ValueError(
            "Triton's interpreter is off, so tl.dot would be compiled for a GPU: set TRITON_INTERPRET=1 before kernels "
            "are defined"
        )


@contextmanager
def emulate(
    engine,
    *,
    k_order="sequential",
    promote_every: int | None = None,
    input_rounding: str | None = None,
    compiler: str = "auto",
) -> Iterator[TritonEmulation]:
    """Run `tl.dot` and `tl.dot_scaled` of interpreted kernels on emulated matrix units, as Triton compiles them.

    Parameters
    ----------
    engine : str or Engine
        Device ("h100"; "h100/mma" for kernels that Triton compiles to mma.sync), instruction "arch:name", or engine.
    k_order, promote_every : optional
        Order of k in place of one chain over the k of a dot, as for :meth:`tensorcore_models.Instruction.gemm`.
    input_rounding : str, optional
        Rounding of values that an operand format lacks. For TF32 the default is truncation ("rz"), because the unit ignores
        the low bits.
    compiler : {"auto", "ask", "rules"}
        Use of Triton's compiler, which takes seconds for each new signature: "auto" runs it if possible, "ask" requires it,
        "rules" never runs it. Without it the rules of one version apply, which the report names.

    Yields
    ------
    TritonEmulation
        Context whose `report()` lists instruction and order of each dot.

    Raises
    ------
    ValueError, TypeError
        If the engine does not exist, or Triton's interpreter is off. Inside of the block for types and precisions that the
        engine does not take, and NotCompiled (a ValueError) if the compiler is required and fails.
    """
    _check_interpreter(triton)
    if compiler not in COMPILERS:
        raise ValueError(f"compiler is {compiler!r}, expected one of {', '.join(COMPILERS)}")
    target = Multiplier(engine, k_order=k_order, promote_every=promote_every, input_rounding=input_rounding)
    run, builder = TritonEmulation(target, compiler), interpreter.interpreter_builder
    options = builder.options
    default = HOPPER_DEFAULT if run.hopper else options.max_num_imprecise_acc_default
    precisions = tuple(dict.fromkeys((*options.allowed_dot_input_precisions, *_WORDS)))
    builder.options = dataclasses.replace(
        options, max_num_imprecise_acc_default=default, allowed_dot_input_precisions=precisions
    )
    builder.create_dot, builder.create_dot_scaled, builder.create_fp_trunc = run.dot, run.scaled_dot, _truncf
    builder.create_fadd = run.add
    try:
        with _watched(run):
            yield run
    finally:
        builder.options = options
        del builder.create_dot, builder.create_dot_scaled, builder.create_fp_trunc, builder.create_fadd


@contextmanager
def _watched(run: TritonEmulation) -> Iterator[None]:
    """Report launches of interpreted kernels, and accumulators of dots, to the emulation."""
    function, semantic = interpreter.InterpretedFunction, interpreter.interpreter_semantic
    launch, dot = function.run, semantic.dot

    def watched_launch(self, *arguments, grid, warmup, **options):
        if not warmup:
            run.launched(self, arguments, options)
        return launch(self, *arguments, grid=grid, warmup=warmup, **options)

    def watched_dot(lhs, rhs, acc, *rest, **named):
        run.started_from(acc)
        return dot(lhs, rhs, acc, *rest, **named)

    function.run, semantic.dot = watched_launch, watched_dot
    try:
        yield
    finally:
        function.run = launch
        del semantic.dot
