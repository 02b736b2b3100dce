from .aimed import Aimed as Aimed
from .box import Box as Box, Fault as Fault, as_box as as_box
from .outcome import Identification as Identification
from .run import identify as identify
from .solver import Solver as Solver
