from .aimed import Aimed
from .box import Box, Fault, as_box
from .outcome import Identification
from .run import identify
from .solver import Solver

__all__ = ["Aimed", "Box", "Fault", "Identification", "Solver", "as_box", "identify"]
