"""This module finds formats by name, with the same spellings in Python and on the command line.

A format's own name is the key of its row. Names of PTX, AMD, NumPy and frameworks are known as well, in upper or lower case
("half", "f16", "torch.bfloat16", "FP8").

Only "e4m3" is ambiguous. The row of that name is ml_dtypes' ``float8_e4m3``, which has IEEE infinities; :func:`get_format`
and the functions that compute with formats (encode, MatrixEngine, ...) mean this format. Hardware, libraries and frameworks
call OCP's e4m3fn "e4m3" (PTX's .e4m3). :func:`operand_format`, which reads operand formats of devices, instructions, recipes,
methods and commands, therefore reads "e4m3" as e4m3fn, and ``e4m3_ieee`` as the row "e4m3".

"fp8" and "fp6" are families: each means one of the formats of a device, not an encoding.
"""

import difflib
import re

from .rows import FORMATS, INTEGER_FORMATS, Format, IntegerFormat

FP8 = ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")
#: Formats of other spellings; a family lists all of its members, the usual member first.
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
#: Prefix of names such as "float8_e5m2": the layout behind it names the format.
_LAYOUT = re.compile(r"^(float|fp|f)[468]_?(?=e\d)")


def format_family(name: str) -> tuple[str, ...]:
    """Return the names of the formats that a word can mean, the usual format first; empty if the word is not a format.

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
    """Return the error for a name that is not a format, with the nearest names."""
    known = [*FORMATS, *INTEGER_FORMATS]
    near = difflib.get_close_matches(name.lower(), [*known, *FORMAT_ALIASES], 3)
    hint = f"did you mean {' or '.join(near)}? Known" if near else "known"
    return ValueError(f"unknown format {name!r}; {hint}: {', '.join(known)}")


def get_format(fmt: str | Format | IntegerFormat) -> Format | IntegerFormat:
    """Return the format called `fmt`; a format is returned unchanged.

    Parameters
    ----------
    fmt : str, Format or IntegerFormat
        Name in :data:`tensorcore_models.FORMATS`, name of an ml_dtypes type, or another usual name, such as "half", "f16" or
        "torch.bfloat16". "e4m3" is ml_dtypes' float8_e4m3, which has infinities; OCP's format without infinity is "e4m3fn".

    Raises
    ------
    ValueError
        If the name is unknown, or stands for several formats ("fp8"); the message lists the known formats.
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


def format_name(row: Format | IntegerFormat) -> str | Format | IntegerFormat:
    """Return the name of a format that is in the tables; return a custom format itself."""
    known = FORMATS.get(row.name) or INTEGER_FORMATS.get(row.name)
    return row.name if known is row or known == row else row


def operand_format(fmt: str | Format | IntegerFormat) -> Format | IntegerFormat:
    """Return the format that hardware, libraries and frameworks call `fmt`; a format is returned unchanged.

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
        raise TypeError(f"expected a format's name or a Format, got {type(fmt).__name__}")
    family = format_family(fmt)
    if not family:
        raise unknown_format(fmt)
    rows = [FORMATS.get(name) or INTEGER_FORMATS[name] for name in family]
    if len({row.exponent_bits for row in rows if isinstance(row, Format)}) > 1:
        raise ValueError(f"{fmt!r} stands for several formats: give one of {', '.join(family)}")
    return rows[0]


def get_float_format(fmt: str | Format | IntegerFormat) -> Format:
    """Return the floating-point format called `fmt` as :func:`get_format` does; ValueError for integer formats."""
    found = get_format(fmt)
    if isinstance(found, IntegerFormat):
        raise ValueError(f"{found.name} is an integer format, expected a floating-point format: {', '.join(FORMATS)}")
    return found
