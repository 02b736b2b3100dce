from . import reference as reference
from .accumulators import (
    Accumulator as Accumulator,
    FusedDotAdd as FusedDotAdd,
    FusedDotRoundDownAdd as FusedDotRoundDownAdd,
    GroupDotFusedSum as GroupDotFusedSum,
    GroupFusedDotRoundDownAdd as GroupFusedDotRoundDownAdd,
    GroupPairwiseSum as GroupPairwiseSum,
    IntegerDotAdd as IntegerDotAdd,
    InterleavedDotAdd as InterleavedDotAdd,
    LanedFMA as LanedFMA,
    PairRoundOddSum as PairRoundOddSum,
    ParametricDotAdd as ParametricDotAdd,
    SequentialFMA as SequentialFMA,
    as_parametric as as_parametric,
)
from .catalogue import (
    architectures as architectures,
    default_instruction as default_instruction,
    get_instruction as get_instruction,
    list_instructions as list_instructions,
)
from .engines.callable_engine import CallableEngine as CallableEngine, as_engine as as_engine
from .engines.engine import Engine as Engine
from .engines.instruction import Instruction as Instruction
from .engines.matrix_engine import MatrixEngine as MatrixEngine
from .engines.scaling import ScaleRule as ScaleRule, Scaling as Scaling, read_scales as read_scales
from .formats import FORMATS as FORMATS, Format as Format, get_format as get_format
from .formats.blocks import (
    BLOCK_FORMATS as BLOCK_FORMATS,
    BlockScaled as BlockScaled,
    quantize_blocks as quantize_blocks,
)
from .formats.exact_rounding import ROUNDINGS as ROUNDINGS
from .formats.interop import as_array as as_array, format_of_dtype as format_of_dtype
from .formats.rounding import decode as decode, encode as encode, round_to as round_to
from .formats.split_analysis import (
    allowed_scale_exponents as allowed_scale_exponents,
    automatic_scale_exponent as automatic_scale_exponent,
)
from .formats.words import bits_kept as bits_kept, join as join, split as split, split_fp16 as split_fp16
from .functions import Function as Function, get_function as get_function, list_functions as list_functions
from .machine.instruction_sets import active_isa as active_isa, available_isas as available_isas, set_isa as set_isa
from .machine.threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads
