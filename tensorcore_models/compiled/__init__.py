"""Read compiled kernels (PTX and AMDGCN) and run them bit for bit without a GPU, on the package's models of matrix units.

Nothing is guessed. An unknown instruction, or one whose bits nobody has published, is refused by name (:class:`Refused`). A
fault of the kernel raises :class:`KernelFault` with its line.
"""

from .amdgcn.program import AMDProgram
from .arguments import PointerTable, Structure, TensorMap
from .compare import KernelComparison, compare
from .errors import KernelFault, KernelLimits, Refused
from .kernel_recipe import KernelRecipe
from .library_recipes import FinishedRecipe
from .program import KernelProgram
from .ptx.program import PTXProgram
from .reading import read
from .results import KernelRun

__all__ = [
    "AMDProgram",
    "FinishedRecipe",
    "KernelComparison",
    "KernelFault",
    "KernelLimits",
    "KernelProgram",
    "KernelRecipe",
    "KernelRun",
    "PTXProgram",
    "PointerTable",
    "Refused",
    "Structure",
    "TensorMap",
    "compare",
    "read",
]
