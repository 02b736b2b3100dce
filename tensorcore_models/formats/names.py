"""Formats by name: one reading of every spelling, for Python and for the command line.

A format's own name is the key of its row. Besides, names of PTX, AMD, NumPy and frameworks are known, in any case ("half",
"f16", "torch.bfloat16", "FP8"). Only "e4m3" is two things. The row of that name is the format with IEEE's infinities,
ml_dtypes' ``float8_e4m3``: :func:`get_format` and all that computes with formats (encode, MatrixEngine, ...) mean this one.
Hardware, libraries and frameworks have OCP's e4m3fn only and call it e4m3 (PTX's .e4m3): wherever operands of theirs are
named (:func:`operand_format`: devices, instructions, recipes, methods, every command) e4m3 is e4m3fn, and the other one
``e4m3_ieee``. "fp8" and "fp6" are families: one of a device's formats is meant by them, no encoding.
"""

import difflib
import re

from .rows import FORMATS, INTEGER_FORMATS, Format, IntegerFormat

FP8 = ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")
#: Other spellings; the families name all of their members, the usual one first.
FORMAT_ALIASES: dict[str, tuple[str, ...]] = {
    "half": ("fp16",), "f16": ("fp16",), "float16": ("fp16",),
    "bfloat16": ("bf16",), "brain": ("bf16",),
    "f32": ("fp32",), "float": ("fp32",), "single": ("fp32",), "float32": ("fp32",),
    "f64": ("fp64",), "double": ("fp64",), "float64": ("fp64",),
    "xf32": ("tf32",), "tensorfloat32": ("tf32",), "hfloat32": ("hf32", "hf32_950"), "hf32": ("hf32", "hf32_950"),
    "hif8": ("hifloat8",),
    "fp8": FP8, "float8": FP8, "e4m3": ("e4m3fn", "e4m3fnuz"), "e5m2": ("e5m2", "e5m2fnuz"),
    "bf8": ("e5m2fnuz",), "e4m3_ieee": ("e4m3",),
    "fp6": ("e3m2", "e2m3"), "fp4": ("e2m1",), "e8m0": ("ue8m0",),
    "int8": ("s8", "u8"), "i8": ("s8",), "uint8": ("u8",), "int4": ("s4", "u4"), "i4": ("s4",), "uint4": ("u4",),
    "int32": ("s32",), "i32": ("s32",),
}  # fmt: skip
_BY_TYPE = {row.dtype_name: row.name for row in FORMATS.values() if row.dtype_name and not row.padding_bits}
#: Width and layout in one word, as frameworks write them: the layout names the format, not its family.
_LAYOUT = re.compile(r"^(float|fp|f)[468]_?(?=e\d)")


def format_family(name: str) -> tuple[str, ...]:
    """Return names of the formats that a word in any case may mean, the usual one first; none where it is no format.

    >>> format_family("E4M3"), format_family("float8_e5m2"), format_family("fp9")
    (('e4m3fn', 'e4m3fnuz'), ('e5m2',), ())
    """
    word = name.strip().lower()
    if word.startswith("ml_dtypes."):
        found = _BY_TYPE.get(word.removeprefix("ml_dtypes."))
        return () if found is None else (found,)
    word = word.removeprefix("torch.")
    if word in FORMAT_ALIASES:
        return FORMAT_ALIASES[word]
    layout = _LAYOUT.sub("", word)
    if layout in FORMAT_ALIASES:
        return FORMAT_ALIASES[layout][:1]
    if layout in FORMATS or layout in INTEGER_FORMATS:
        return (layout,)
    return (_BY_TYPE[word],) if word in _BY_TYPE else ()


def unknown_format(name: str) -> ValueError:
    """Return the error for a name that is no format, with the nearest names."""
    known = [*FORMATS, *INTEGER_FORMATS]
    near = difflib.get_close_matches(name.lower(), [*known, *FORMAT_ALIASES], 3)
    hint = f"did you mean {' or '.join(near)}? Known" if near else "known"
    return ValueError(f"unknown format {name!r}; {hint}: {', '.join(known)}")


def get_format(fmt: str | Format | IntegerFormat) -> Format | IntegerFormat:
    """Return the format called `fmt`; a format is returned unchanged.

    Parameters
    ----------
    fmt : str, Format or IntegerFormat
        A name of :data:`tensorcore_models.FORMATS` or the name of its ml_dtypes type; or another spelling as for
        :func:`operand_format`.

    Raises
    ------
    ValueError
        If the name is unknown, or stands for several formats ("fp8"); the message lists the known ones.
    TypeError
        If `fmt` is neither a string nor a format.

    Examples
    --------
    >>> get_format("Half").name, get_format("e4m3").has_inf, get_format("float8_e4m3").name
    ('fp16', True, 'e4m3')
    """
    if isinstance(fmt, Format):
        return fmt
    if isinstance(fmt, str):
        word = fmt.strip().lower()
        name = _BY_TYPE.get(word, word)
        found = FORMATS.get(name) or INTEGER_FORMATS.get(name)
        if found is not None:
            return found
    return operand_format(fmt)


def operand_format(fmt: str | Format | IntegerFormat) -> Format | IntegerFormat:
    """Return the format that hardware, libraries and frameworks call so, in any case; a format is returned as it is.

    Raises
    ------
    ValueError, TypeError
        See :func:`get_format`.

    Examples
    --------
    >>> operand_format("Half").name, operand_format("e4m3").name, operand_format("e4m3_ieee").name
    ('fp16', 'e4m3fn', 'e4m3')
    """
    if isinstance(fmt, Format | IntegerFormat):
        return fmt
    if not isinstance(fmt, str):
        raise TypeError(f"a format is a name or a Format, got {type(fmt).__name__}")
    family = format_family(fmt)
    if not family:
        raise unknown_format(fmt)
    rows = [FORMATS.get(name) or INTEGER_FORMATS[name] for name in family]
    if len({row.exponent_bits for row in rows if isinstance(row, Format)}) > 1:
        raise ValueError(f"{fmt!r} stands for several formats, name one: {', '.join(family)}")
    return rows[0]


def get_float_format(fmt: str | Format | IntegerFormat) -> Format:
    """Return the floating-point format of that name: :func:`get_format`, but ValueError for the integer formats."""
    found = get_format(fmt)
    if isinstance(found, IntegerFormat):
        raise ValueError(f"{found.name} is an integer format, expected a floating-point format: {', '.join(FORMATS)}")
    return found
