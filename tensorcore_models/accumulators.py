"""Accumulator algorithms: what a matrix unit does with the products of one output element.

Each class is a frozen, self-validating specification of one algorithm family; an instruction or a custom engine is such a
specification together with operand formats. A class also states the algorithm in exact integers (`pass_bits`), which the
compiled kernels repeat fast, and in words, as a tree, as an error and as terms for solvers: :class:`Accumulator` lists what a
class of one's own may override. The classes live in the files and folders of `tensorcore_models/families`.

Notation, as in the papers: one output element is ``d = c + sum_k a_k b_k``; *terms* (N) products are added in one fused
operation, addends are aligned to the largest exponent and kept to *fraction_bits* (F) bits below it. An operand's exponent
is the one of its encoding, so that a subnormal number has the exponent of the smallest normal one, and a product's
exponent is the sum of its operands' (it is not normalised).

A K longer than one fused operation is a chain: the rounded result of one operation is the c of the next (xie-mma-sim,
section IV-D). That holds within an instruction (CoFDA, CoFDRDA, CoGFDRDA) and from one instruction to the next.

Edge rules, where published models disagree (the names are fields; `Accumulator.edge_rules` lists a class's own):

zero_operand
    Whether a zero operand's product, which adds nothing, takes part in the alignment, and with which exponent of the operand.
    ``"skip"``: zero products take no part (recorded on an RTX 4060; mmasim 2.1.1, MATLAB-tensor-core); ``"minus126"``: the
    exponent of a zero is -126 whatever its format (MMA-Sim's code as first published); ``"format_minimum"``: it is the
    smallest normal exponent of its format (a literal reading of xie-mma-sim, section IV-C).
zero_c
    The same for c = 0: ``"skip"`` (mmasim 2.1.1, MATLAB-tensor-core; on CDNA3 ``"minus126"``), ``"minus126"`` or
    ``"format_minimum"``.
exponent_floor
    The alignment exponent is never below this; None: no floor. It shows where c = 0 and all products are small. The rows of the
    catalogue have the rules of their architecture.
scaled_zero
    Whether zero products below block scales take part with the exponents of the scales: ``"skip"`` and ``"keeps_scale"``; for
    exact group sums also ``"skip_zero_products"``, which tells a group of zero products, which takes no part, from one that
    cancels, which keeps its scales' exponents (mmasim 2.1.1).
subnormal_c
    ``"raw"``: a subnormal c has its format's smallest normal exponent; ``"normalised"``: the exponent of its leading bit.
negative_underflow
    Sign of the result when a negative sum rounds to zero: ``"positive"`` (MMA-Sim's code, valpey-smt: -0 is never output)
    or ``"negative"`` (MATLAB-tensor-core).
nan
    NaN results: ``"all_ones"`` (0x7fffffff, 0x7fff: NVIDIA's canonical NaN) or ``"quiet"`` (most significant fraction bit).
    For SequentialFMA and LanedFMA also ``"x86"``: an operation with NaN operands returns the first of them (a, b, the addend;
    of an addition the earlier partial sum, c before the dot product), made quiet, its sign and the leading bits of its
    payload kept; an invalid operation returns the negative quiet NaN (0xffc00000).
    For SequentialFMA also ``"dmma"``, which gives the NaN that Hopper's FP64 instructions gave on an H100: as ``"x86"``, in the
    order b, addend, a.
pairs
    Of AMX-FP8 (LanedFMA), whose operation leaves open how the four products of a dword are added: ``"none"``, one chain, or
    ``"two_lanes"`` (Bochs): pairs, each added to a lane of its own.
erratum
    Of FidelityPhases: ``"minus_one"``, Wormhole's wrong normalisation of a sum of -1 unit, or ``"none"``.
tf32_nan
    tf32 operand whose payload is in the 13 ignored bits only: ``"truncated"`` (it becomes infinity) or ``"kept"`` (NaN).

The stub beside this file says where each class is, so that a unit of one vendor reads the families of its own arithmetic alone.
A family that it does not name is found in its file.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from . import families
from .lazy import public_names

_PLACES = public_names(Path(__file__).with_suffix(".pyi"))


def _names() -> list[str]:
    """Return all public names; a family has its own without being listed."""
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
