from . import reference
from .accumulators import (
    Accumulator,
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    IntegerDotAdd,
    InterleavedDotAdd,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
    as_parametric,
)
from .catalogue import architectures, default_instruction, get_instruction, list_instructions
from .engines.callable_engine import CallableEngine, as_engine
from .engines.engine import Engine
from .engines.instruction import Instruction
from .engines.matrix_engine import MatrixEngine
from .engines.scaling import ScaleRule, Scaling, read_scales
from .formats import FORMATS, Format, get_format
from .formats.blocks import BLOCK_FORMATS, BlockScaled, quantize_blocks
from .formats.exact_rounding import ROUNDINGS
from .formats.interop import as_array, format_of_dtype
from .formats.rounding import decode, encode, round_to
from .formats.split_analysis import allowed_scale_exponents, automatic_scale_exponent
from .formats.words import bits_kept, join, split, split_fp16
from .machine.instruction_sets import active_isa, available_isas, set_isa
from .machine.threads import get_num_threads, set_num_threads

__all__ = [
    "Accumulator",
    "BLOCK_FORMATS",
    "BlockScaled",
    "CallableEngine",
    "Engine",
    "FORMATS",
    "Format",
    "FusedDotAdd",
    "FusedDotRoundDownAdd",
    "GroupDotFusedSum",
    "GroupFusedDotRoundDownAdd",
    "GroupPairwiseSum",
    "Instruction",
    "IntegerDotAdd",
    "InterleavedDotAdd",
    "LanedFMA",
    "MatrixEngine",
    "PairRoundOddSum",
    "ParametricDotAdd",
    "ROUNDINGS",
    "ScaleRule",
    "Scaling",
    "SequentialFMA",
    "active_isa",
    "allowed_scale_exponents",
    "architectures",
    "as_array",
    "as_engine",
    "as_parametric",
    "automatic_scale_exponent",
    "available_isas",
    "bits_kept",
    "decode",
    "default_instruction",
    "encode",
    "format_of_dtype",
    "get_format",
    "get_instruction",
    "get_num_threads",
    "join",
    "list_instructions",
    "quantize_blocks",
    "read_scales",
    "reference",
    "round_to",
    "set_isa",
    "set_num_threads",
    "split",
    "split_fp16",
]
