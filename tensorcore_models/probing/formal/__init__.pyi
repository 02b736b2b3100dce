from .encoding import Unencodable
from .methods import Way, beating_input, inside, outside
from .orders import order_invariance
from .queries import FormalVerdict, carry_bits_needed, distinguishing_input, monotonicity_witness
from .solvers import BACKENDS, Answer, NoSolver, available_backends
from .witnesses import Contradiction, Witness

__all__ = [
    "BACKENDS",
    "Answer",
    "Contradiction",
    "NoSolver",
    "Unencodable",
    "FormalVerdict",
    "Way",
    "Witness",
    "available_backends",
    "beating_input",
    "carry_bits_needed",
    "distinguishing_input",
    "inside",
    "monotonicity_witness",
    "order_invariance",
    "outside",
]
