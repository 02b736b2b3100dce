"""Number formats: their rows, encoding and rounding, words, block scales, exchange with other libraries.

`rows` has the formats as data, `names` every spelling of them, `exact_rounding` the rounding of one number in plain integers,
`rounding` the same for arrays, `words` the splitting into words of a narrower format, `split_analysis` what such a split keeps,
`blocks` block scales, `interop` other libraries' arrays, `operands` what users give as operands, `sums` additions outside of
an engine.
"""

from .names import format_family, get_float_format, get_format, operand_format
from .rows import FORMATS, INTEGER_FORMATS, Decoded, Format, IntegerFormat

__all__ = [
    "FORMATS",
    "INTEGER_FORMATS",
    "Decoded",
    "Format",
    "IntegerFormat",
    "format_family",
    "get_float_format",
    "get_format",
    "operand_format",
]
