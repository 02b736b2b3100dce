"""This module names the accumulator algorithms, which state how a matrix unit adds the products of one output element.

Each class is a frozen, self-validating specification of one algorithm family; an instruction or a custom engine is such a
specification together with operand formats. A class also states the algorithm in exact integers (`pass_bits`), which the
compiled kernels repeat fast. It can describe the algorithm in words, as a tree, by an error bound and as terms for solvers;
:class:`Accumulator` lists the methods that your own class may override. The classes live in `tensorcore_models/families`.

The notation is that of the papers. One output element is ``d = c + sum_k a_k b_k``. One fused operation adds *terms* (N)
products; its addends are aligned to the largest exponent and kept to *fraction_bits* (F) bits below it. The exponent of an
operand is that of its encoding, so a subnormal number has the exponent of the smallest normal number. The exponent of a
product is the sum of its operands' exponents (the product is not normalised).

A K longer than one fused operation is a chain: the rounded result of one operation is the c of the next (xie-mma-sim,
section IV-D). Chains occur within an instruction (CoFDA, CoFDRDA, CoGFDRDA) and from one instruction to the next.

Edge rules say what a unit does where published models disagree. Their names are fields of the classes, and
`Accumulator.edge_rules` lists the edge rules of a class:

zero_operand
    This rule says whether the product of a zero operand, which adds nothing, takes part in the alignment, and with which
    exponent. ``"skip"``: zero products take no part (recorded on an RTX 4060; mmasim 2.1.1, MATLAB-tensor-core).
    ``"minus126"``: the exponent of a zero is -126 whatever its format (MMA-Sim's code as first published).
    ``"format_minimum"``: the exponent of a zero is the smallest normal exponent of its format (a literal reading of
    xie-mma-sim, section IV-C).
zero_c
    This rule says whether c = 0 takes part in the alignment: ``"skip"`` (mmasim 2.1.1, MATLAB-tensor-core; on CDNA3
    ``"minus126"``), ``"minus126"`` or ``"format_minimum"``.
exponent_floor
    The alignment exponent is never below this number; None sets no floor. A floor changes results where c = 0 and all
    products are small. Each row of the catalogue has the floor of its architecture.
scaled_zero
    This rule says whether zero products with block scales take part in the alignment with the exponents of the scales:
    ``"keeps_scale"`` or ``"skip"``. Exact group sums also have ``"skip_zero_products"`` (mmasim 2.1.1): a group of zero
    products takes no part, and a group whose products cancel keeps the exponents of its scales.
subnormal_c
    This rule says which exponent a subnormal c has: the smallest normal exponent of its format (``"raw"``) or the exponent of
    its leading bit (``"normalised"``).
negative_underflow
    This rule says which sign the result has when a negative sum rounds to zero: ``"positive"`` (MMA-Sim's code, valpey-smt:
    -0 is never output) or ``"negative"`` (MATLAB-tensor-core).
nan
    This rule says which NaN is returned: ``"all_ones"`` (0x7fffffff, 0x7fff: NVIDIA's canonical NaN) or ``"quiet"`` (only the
    most significant fraction bit is set). SequentialFMA and LanedFMA also have ``"x86"``: an operation with NaN operands
    returns its first NaN, made quiet, with its sign and the leading bits of its payload; an invalid operation returns the
    negative quiet NaN (0xffc00000). The order of operands is a, b, addend; an addition looks at the earlier partial sum first,
    and at c before the dot product.
    SequentialFMA also has ``"dmma"``, the rule of Hopper's FP64 instructions as seen on an H100: it is ``"x86"`` with the
    operands in the order b, addend, a.
pairs
    This rule of AMX-FP8 (LanedFMA) says how the four products of a dword are added, which the instruction's published
    operation leaves open: ``"none"`` adds them in one chain, ``"two_lanes"`` (Bochs) adds each pair to a lane of its own.
erratum
    This rule of FidelityPhases is ``"minus_one"`` for Wormhole's wrong normalisation of a sum of -1 unit, else ``"none"``.
tf32_nan
    This rule says what a tf32 NaN becomes whose payload is in the 13 ignored bits only: infinity (``"truncated"``) or NaN
    (``"kept"``).

The stub beside this file says which module holds each class, so that a unit of one vendor imports only the families of its
own arithmetic. A family that the stub does not name is found through `FAMILIES`.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from . import families
from .lazy import public_names

_PLACES = public_names(Path(__file__).with_suffix(".pyi"))


def _names() -> list[str]:
    """Return all public names: those of the stub, and the class names of all families."""
    return sorted({*_PLACES, *(family.__name__ for family in families.FAMILIES)})


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _names()
    if name == "FAMILIES":
        return families.FAMILIES
    if name in _PLACES:
        globals()[name] = found = getattr(import_module(_PLACES[name], __package__), name)
        return found
    if not name.startswith("_"):
        for family in families.FAMILIES:
            if family.__name__ == name:
                return family
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_names()]
