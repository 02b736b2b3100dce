"""Finds engines by name, makes IEEE units and hypothetical engines, and lists engines that can run a method."""

import dataclasses
from dataclasses import dataclass

import tensorcore_models as tcm
from mpgemm.recovery.exact_sums import exact_bits, exact_products
from mpgemm.recovery.methods import RecoveryMethod, list_methods
from tensorcore_models import hardware
from tensorcore_models.catalogue import SeveralPaths, canonical_device, usual_path
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.formats import IntegerFormat
from tensorcore_models.formats.names import format_family, operand_format, unknown_format


class UnsuitableEngine(ValueError):
    """`UnsuitableEngine` is raised if an engine cannot run a recovery method.

    It does not accept the method's words, or the method needs exact sums or a scaled accumulator input, which it lacks.
    """


@dataclass(frozen=True, kw_only=True)
class NamedEngine(MatrixEngine):
    """`NamedEngine` is a matrix engine with a name of its own, such as an IEEE unit or a hypothetical core."""

    name: str  #: Name in tables.
    note: str = ""  #: Facts that a reader must know about the engine.

    @property
    def label(self) -> str:
        return self.name


def ieee_engine(fmt: str = "fp32", result: str | None = None) -> NamedEngine:
    """Return an IEEE unit, whose results are chains of fused multiply-adds in k order.

    Parameters
    ----------
    fmt : str
        Operand format.
    result : str, optional
        Format of the sums and the result, by default fp64 for fp64 operands and fp32 for others.

    Examples
    --------
    >>> ieee_engine("fp16", "fp16").label
    'ieee:fp16 to fp16'
    """
    fmt = tcm.get_format(fmt).name
    result = tcm.get_format(result or ("fp64" if fmt == "fp64" else "fp32")).name
    return NamedEngine(
        tcm.SequentialFMA(), a_format=fmt, c_format=result, d_format=result, name=f"ieee:{fmt} to {result}"
    )


def hypothetical_engine(
    device: str, fmt: str, *, model: str = "fp16", path: str | None = None, **changes
) -> NamedEngine:
    """Return a hypothetical engine: a device's accumulator with other operand formats or with changed parameters.

    Parameters
    ----------
    device : str
        Name of a device or architecture.
    fmt : str
        Operand format of the engine.
    model : str
        Operand format of the device's instruction whose accumulator the engine uses.
    path : str, optional
        See :func:`tensorcore_models.default_instruction`.
    **changes
        Fields of the accumulator to replace.

    Raises
    ------
    ValueError
        If there is no such device, format or path, or a changed field is not allowed.
    """
    base = device_engine(device, model, path=path)
    accumulator = dataclasses.replace(base.accumulator, **changes)
    what = ", ".join(f"{key}={value}" for key, value in changes.items())
    name = f"{device} accumulator, {fmt} operands" + (f", {what}" if what else "") + " (hypothetical)"
    note = f"{base}'s accumulator; no such unit exists"
    return NamedEngine(accumulator, a_format=fmt, c_format=base.c_format, d_format=base.d_format, name=name, note=note)


def device_engine(
    device: str,
    fmt: str | tcm.Format | IntegerFormat,
    b_format: str | tcm.Format | IntegerFormat | None = None,
    d_format: str | None = None,
    path: str | None = None,
) -> tcm.Instruction:
    """Return the instruction of a device for operands of these formats, that of its usual path if paths compute differently.

    device: name of a device or architecture.
    fmt, b_format: formats of a and b; b's is a's by default.
    d_format: format of c and d, by default fp64 for fp64 operands, s32 for integers and fp32 for others.
    path: path of :func:`tensorcore_models.default_instruction`.
    Raises ValueError if there is no such instruction.
    """
    device = canonical_device(device)
    row = operand_format(fmt)  # pass the format on and not its name, because "e4m3" is only a spelling of e4m3fn
    d_format = d_format or _sum_format(row.name)
    try:
        return tcm.default_instruction(device, row, d_format, path, b_format)
    except SeveralPaths:
        usual = usual_path(device)
        if usual is None:
            raise
        return tcm.default_instruction(device, row, d_format, usual, b_format)


def scaled_engine(
    device: str, a_format: str, b_format: str, scale_format: str, block_size: int, path: str | None = None
) -> tcm.Instruction:
    """Return the instruction of a device with these block scales: the largest k, on the usual path if that has one.

    device: name of a device or architecture.
    Raises ValueError if there is no such instruction; the message says which block scales the device has.
    """
    device = canonical_device(device)
    scaled = [row for row in tcm.list_instructions(device) if row.scale_format is not None]
    wanted = (a_format, b_format, scale_format, block_size)
    rows = [row for row in scaled if (row.a_format, row.b_format, row.scale_format, row.block_size) == wanted]
    rows = [row for row in rows if path is None or row.path == path]
    usual = [row for row in rows if row.path == usual_path(device)] or rows
    if not usual:
        kinds = sorted({f"{r.a_format} x {r.b_format} with {r.scale_format} for {r.block_size}" for r in scaled})
        has = ", ".join(kinds) if kinds else "no unit with block scales"
        raise ValueError(
            f"{device} has no unit for {a_format} x {b_format} with one {scale_format} scale for {block_size} products; it has "
            f"{has}"
        )
    return max(usual, key=lambda row: row.k)


def plain_engine(name: str, fmt: str | None = None) -> Engine:
    """Return the engine of a name, without a recovery method.

    name: "arch:name" of an instruction in any spelling; a device or architecture ("h100" stands for its usual instruction for
        the operand format, "h100/mma" names the path); "ieee" for a chain of fused multiply-adds; or a name of hardware
        (:func:`tensorcore_models.hardware.engine`).
    fmt: operand format or an alias of one ("fp8" is e4m3fn, or the format that the device has), by default fp16.
    Raises ValueError if there is no such engine, or its operand format is not `fmt`.
    """
    wanted = format_family(fmt) if fmt is not None else ()
    if fmt is not None and not wanted:
        raise unknown_format(fmt)
    if (engine := named_engine(name)) is not None:
        if wanted and engine.formats[0].name not in wanted:
            raise ValueError(
                f"{engine.label} takes {engine.formats[0].name} operands, got the format {fmt}; leave the format out"
            )
        return engine
    if name == "ieee":
        return ieee_engine(wanted[0] if wanted else "fp32")
    device, _, path = name.partition("/")
    has = list(dict.fromkeys(row.a_format for row in tcm.list_instructions(device)))
    found = [f for f in wanted or ("fp16", *has) if f in has]
    if not found:
        raise ValueError(f"{device} has no matrix unit for {fmt}; it takes {', '.join(has)}")
    return device_engine(device, found[0], path=path or None)


def engine_formats(engine: Engine) -> tuple[str, str]:
    """Return the names of an engine's operand formats."""
    return engine.formats[0].name, engine.formats[1].name


def resolve_engine(engine, method: RecoveryMethod) -> Engine:
    """Return the engine that `engine` names, after a check that it accepts the method's words.

    Parameters
    ----------
    engine : Engine, str or None
        An engine, or a name: "arch:name" of an instruction of the catalogue, a device or architecture, a name of
        :func:`tensorcore_models.hardware.engine` such as "cpu:name", or "ieee" for an IEEE unit of the method's format. A
        device such as "a100" stands for its default instruction for the method's words; "h100/wgmma" also names the path.
        None means the method's default engine.
    method : RecoveryMethod
        The method that the engine must run.

    Raises
    ------
    ValueError
        If there is no engine of this name.
    UnsuitableEngine
        If the engine does not accept the method's words (a subclass of ValueError); the message names engines that do.
    TypeError
        If `engine` is neither a string nor an engine.
    """
    engine = method.default_engine if engine is None else engine
    try:
        return _resolved(engine, method)
    except UnsuitableEngine as error:
        raise UnsuitableEngine(f"{error}; {_instead(engine, method)}") from None


def _resolved(engine, method: RecoveryMethod) -> Engine:
    """Return the engine like :func:`resolve_engine`; an error says only why the engine does not fit."""
    if isinstance(engine, str):
        engine = _by_name(engine, method)
    if not isinstance(engine, Engine):
        raise TypeError(
            f"engine is a {type(engine).__name__}, expected an engine, 'arch:name' or a device; as_engine() wraps a callable"
        )
    a, b = engine_formats(engine)
    if a != b or a not in method.formats or engine.scale_format is not None:
        takes = f"{a} words" if a == b else f"{a} and {b} words"
        takes += " with block scales" if engine.scale_format is not None else ""
        raise UnsuitableEngine(
            f"method {method.name!r} needs words of {' or '.join(method.formats)}, {engine.label} takes {takes}"
        )
    if method.scaled_input and engine.largest_input_scale < method.word_scale(engine.formats[0]):
        raise UnsuitableEngine(
            f"method {method.name!r} needs a unit that scales its accumulator input (tcgen05.mma with scale-input-d), which "
            f"{engine.label} does not; bf16x9 runs on it, in an order that this package chose"
        )
    if method.exact and not method.integer and exact_products(engine, method.largest_product) < 1:
        raise UnsuitableEngine(
            f"method {method.name!r} needs exact sums of products up to {method.largest_product}, but {engine.label} keeps "
            f"{exact_bits(engine)} bits, fewer than one product has"
        )
    if method.integer and engine.formats[3].name != "s32":
        raise UnsuitableEngine(
            f"method {method.name!r} needs exact int32 sums, {engine.label} gives {engine.formats[3].name}"
        )
    return engine


def _by_name(name: str, method: RecoveryMethod) -> Engine:
    if name == "ieee":
        if method.integer:
            a, name = method.formats[0], "ieee:int8 to int32"
            return NamedEngine(tcm.IntegerDotAdd(), a_format=a, c_format="s32", d_format="s32", name=name)
        return ieee_engine(method.formats[0])
    if (engine := named_engine(name)) is not None:
        return engine
    device, _, path = name.partition("/")
    rows = [row for row in tcm.list_instructions(device) if row.scale_format is None]
    if method.scaled_input and not path:  # a device stands for its path that can run the method
        scaling = (row for row in rows if row.a_format in method.formats and row.largest_input_scale)
        path = next((row.path for row in scaling), "")
    known = list(dict.fromkeys(row.a_format for row in rows))
    summed = [fmt for fmt in known if any(_sums(row, fmt) for row in rows)]
    for fmt in method.formats:
        if fmt in summed or (path and fmt in known):
            return device_engine(device, tcm.get_format(fmt), path=path or None)
    takes = ", ".join(known)
    if set(known) & set(method.formats):
        takes = ", ".join(dict.fromkeys(f"{row.a_format} to {row.d_format}" for row in rows))
    raise UnsuitableEngine(
        f"method {method.name!r} needs words of {' or '.join(method.formats)}, {device} takes {takes}"
    )


def _sum_format(fmt: str) -> str:
    """Return the default format of sums of products of a word format."""
    return {"fp64": "fp64", "s8": "s32", "u8": "s32", "s4": "s32"}.get(fmt, "fp32")


def _sums(row: tcm.Instruction, fmt: str) -> bool:
    """Return whether an instruction multiplies words of a format with each other and sums in the default format."""
    return (row.a_format, row.b_format, row.c_format, row.d_format) == (fmt, fmt, *(_sum_format(fmt),) * 2)


def _instead(engine: str | Engine, method: RecoveryMethod) -> str:
    """Return alternatives to a method that does not run: other methods on the engine, and other engines for the method."""
    name = engine if isinstance(engine, str) else engine.label
    others = [row.name for row in list_methods() if _takes(engine, row)]
    there = f"methods that {name} runs: {', '.join(others)}; " if others else ""
    return f"{there}engines that run it: {', '.join(suitable_engines(method))}"


def _takes(engine: str | Engine, method: RecoveryMethod) -> bool:
    try:
        return bool(_resolved(engine, method))
    except ValueError:
        return False


def named_engine(name: str) -> Engine | None:
    """Return hardware or a catalogued instruction by its full name, None for devices, architectures and "ieee"."""
    if name.partition(":")[0] in hardware.PREFIXES:
        return hardware_engine(name)
    return tcm.get_instruction(name) if ":" in name else None


def hardware_engine(name: str) -> Engine:
    """Return hardware by a name of :func:`tensorcore_models.hardware.engine`; raise ValueError if it is not available."""
    try:
        engine = hardware.engine(name)
        engine.require()
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{name}: {error}") from None
    return engine


def suitable_engines(method: RecoveryMethod) -> list[str]:
    """Return the names of catalogued instructions that take the method's words, one for each architecture, at most eight."""
    first: dict[str, str] = {}
    for row in tcm.list_instructions():
        result = row.d_format in (("s32",) if method.integer else ("fp32", "fp64"))
        plain = row.scale_format is None and row.published and row.a_format == row.b_format
        scales = not method.scaled_input or row.largest_input_scale
        if plain and result and scales and row.a_format in method.formats:
            first.setdefault(row.arch, str(row))
    return [*first.values()][:8] or ["none in the catalogue; make a MatrixEngine"]
