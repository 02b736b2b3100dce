from .families.aligned import AlignedSum as AlignedSum
from .families.base import Accumulator as Accumulator
from .families.converted import ConvertedDotAdd as ConvertedDotAdd
from .families.fidelity import FidelityPhases as FidelityPhases
from .families.fma_chain import SequentialFMA as SequentialFMA
from .families.fused import (
    FusedDotAdd as FusedDotAdd,
)
from .families.fused import (
    ParametricDotAdd as ParametricDotAdd,
)
from .families.fused import (
    as_parametric as as_parametric,
)
from .families.group_sum import GroupDotFusedSum as GroupDotFusedSum
from .families.integer import IntegerDotAdd as IntegerDotAdd
from .families.interleaved import InterleavedDotAdd as InterleavedDotAdd
from .families.lanes import LanedFMA as LanedFMA
from .families.pairwise import GroupPairwiseSum as GroupPairwiseSum
from .families.round_down import (
    FusedDotRoundDownAdd as FusedDotRoundDownAdd,
)
from .families.round_down import (
    GroupFusedDotRoundDownAdd as GroupFusedDotRoundDownAdd,
)
from .families.round_odd import PairRoundOddSum as PairRoundOddSum
from .families.scaled_dot import ScaledDotAdd as ScaledDotAdd
from .families.unpublished import Unpublished as Unpublished
from .families.widened import WidenedDotAdd as WidenedDotAdd
