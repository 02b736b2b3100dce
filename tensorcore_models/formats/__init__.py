"""Number formats: their rows, encoding and rounding, words, block scales, exchange with other libraries.

`rows` has the formats as data, `exact_rounding` the rounding of one number in plain integers, `rounding` the same for arrays,
`words` the splitting into words of a narrower format, `split_analysis` what such a split keeps, `blocks` block scales,
`interop` other libraries' arrays, `operands` what users give as operands, `sums` additions outside of an engine.
"""

from .rows import FORMATS, INTEGER_FORMATS, Decoded, Format, IntegerFormat, get_float_format, get_format

__all__ = ["FORMATS", "INTEGER_FORMATS", "Decoded", "Format", "IntegerFormat", "get_float_format", "get_format"]
