from .encoding import Unencodable as Unencodable
from .methods import Way as Way, beating_input as beating_input, inside as inside, outside as outside
from .orders import order_invariance as order_invariance
from .queries import (
    FormalVerdict as FormalVerdict,
    carry_bits_needed as carry_bits_needed,
    distinguishing_input as distinguishing_input,
    monotonicity_witness as monotonicity_witness,
)
from .solvers import (
    BACKENDS as BACKENDS,
    Answer as Answer,
    NoSolver as NoSolver,
    available_backends as available_backends,
)
from .witnesses import Contradiction as Contradiction, Witness as Witness
