"""This package holds number formats, encoding, rounding, splitting into words, block scales and exchange of arrays.

`rows` holds the formats as data and `names` their spellings. `exact_rounding` rounds one number in plain integers, `rounding`
rounds arrays. `words` splits values into words of a narrower format, `split_analysis` counts the bits that a split keeps.
`blocks` quantises with block scales, `interop` reads arrays of other libraries, `operands` checks and encodes operands, `sums`
adds outside an engine.
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
