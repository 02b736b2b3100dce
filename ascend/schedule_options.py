"""This module lists the options of a schedule, each once, checks them, and derives the properties that follow from them.

A record has a field with its description for each option. The schedule, the request to the planner,
:func:`ascend.build_schedule`, their docstrings and the commands' arguments are made from it.
"""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

from ascend.blocking import ACCUMULATOR_BYTES, SPLIT_OPERANDS, Buffering
from ascend.chips.chip import Chip
from ascend.dialects import check_dialect
from ascend.grid import Grid, Swizzle
from ascend.operand_formats import FORMATS, OperandFormat
from ascend.term_modes import MODES, Combination, Mode, combination
from tensorcore_models.integers import integer_fields

_T = TypeVar("_T")

#: Operand whose panel stays in L1; "none": both operands are streamed.
Resident = Literal["a", "b", "none"]
RESIDENTS = ("a", "b", "none")
#: Layout of A and B in memory: NZ fractals, or ND rows that must be converted to fractals; "nt": ND with B as n x k rows.
Layout = Literal["nz", "nd", "nt"]
LAYOUTS = ("nz", "nd", "nt")
#: Alignment in bytes with which FIXPIPE writes rows of C at its full rate.
ROW_ALIGNMENT = 32
#: Operands whose words already lie in memory.
PRESPLITS = ("", "a", "b", "ab")
#: Way in which slices of k become one C: FP32 additions in memory in any order, or a pass that adds them in order of k.
Merge = Literal["atomic", "reduce"]
MERGES = ("atomic", "reduce")
#: Templates of AscendC's Matmul: one block of A and of B in L1 at a time, or several that are loaded together; "": no template.
Template = Literal["", "norm", "mdl"]
TEMPLATES = ("", "norm", "mdl")
#: Unit that scales the sums of int8 operands. FIXPIPE applies a scale for each column while it writes C, 16 bits wide; vector
#: units apply a scale for each row and column afterwards; "": the sums are not scaled.
Dequantize = Literal["", "fixpipe", "vector"]
DEQUANTIZES = ("", "fixpipe", "vector")
#: Buffering: with "double", one block is loaded while another is multiplied.
BUFFERINGS = ("single", "double")
#: Largest number of blocks of a streamed operand in L1; the queue of MTE2 has no use for more.
DEEPEST_STREAM = 8


class Option(NamedTuple):
    """`Option` holds an option's description, for docstrings and the command line, and its allowed values."""

    says: str
    choices: tuple = ()  #: allowed values; "" means that the option may be left out
    command: Mapping[str, Any] = {}  #: keywords of argparse that do not follow from the other fields


def option(default: Any, says: str, choices: Sequence = (), **command: Any) -> Any:
    """Return a field of a record of options."""
    return field(default=default, metadata={"option": Option(says, tuple(choices), command)})


def options_of(record: type) -> dict[str, tuple[Any, Option]]:
    """Return (default, description) of each option of a record of options, by its name."""
    return {f.name: (f.default, f.metadata["option"]) for f in fields(record) if "option" in f.metadata}


def describes_options(record: type[_T]) -> type[_T]:
    """Add the description of each option to the docstring of a record."""
    lines = [record.__doc__ or "", "", "    Parameters", "    ----------"]
    for name, (default, row) in options_of(record).items():
        kind = (
            "{" + ", ".join(map(repr, row.choices)).replace("'", '"') + "}" if row.choices else type(default).__name__
        )
        if default is None:
            kind = "optional"
        lines += [f"    {name} : {kind}", f"        {row.says[0].upper()}{row.says[1:]}."]
    record.__doc__ = "\n".join(lines) + "\n"
    return record


def refuse_unknown(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise TypeError if a function does not have an option; the message names the nearest one and all that it has."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise TypeError(f"{function} has no option {', '.join(unknown)}{hint}; it has {', '.join(known)}")


@describes_options
@dataclass(frozen=True, kw_only=True)
class SharedOptions:
    """`SharedOptions` lists the options that a schedule, a request to the planner and a command share."""

    terms: int = option(
        3, "products of words for each FP32 product: 1 multiplies the operands as they are, 4 includes low-low", (1, 3, 4),
        help="number of products of words for each FP32 product: 1 (operands as they are), 3, or 4 (also low x "
        "low). Default of simulate: 3, or 1 if --operand is given; plan compares all, unless --terms, "
        "--operand or --mode is given",
    )  # fmt: skip
    buffering: Buffering = option(
        "double",
        "double: the next block is loaded while the current one is multiplied; single: loading and multiplying alternate",
        BUFFERINGS,
    )
    mode: Mode = option(
        "termwise", "how the terms are combined and kept", MODES,
        help="how the terms are summed: termwise and fused keep a sum for each term (fused computes all terms at "
        "once), termwise_inplace adds one term after the other into C, elementwise keeps one sum for all "
        "terms (default termwise; plan also tries fused, which gives the same bits)",
    )  # fmt: skip
    operand: str = option(
        "fp16", "format of A and B on the cube; formats other than fp16 have one term", tuple(FORMATS),
        help="format of A and B on the cube (default fp16; plan compares several unless --terms, --operand or --mode is "
        "given). With --operand the product has one term; only --operand fp16 takes --terms or --mode beside it (then 3 "
        "terms by default)",
    )  # fmt: skip
    merge: Merge = option(
        "reduce",
        "how the sums of slices of k are merged: reduce adds the sums in order, atomic adds them in memory in any order",
        MERGES,
    )
    layout: Layout = option(
        "nz", "layout of A and B in memory, for one term: nz (fractals), nd (rows), or nt (rows, with B stored "
        "as N x K). The pass that splits operands for several terms always writes nz", LAYOUTS,
    )  # fmt: skip
    presplit: str = option(
        "",
        "operands that were split into words earlier, such as weights (default: none); this changes times, not bits",
        PRESPLITS,
    )
    warm: bool = option(
        False,
        "assume that A, B and C are in L2 at the start if they fit, as in a timing loop; this has no effect on "
        'the kernel "paper"',
    )
    dequantize: Dequantize = option(
        "", "unit that scales the int32 sums of int8 operands: fixpipe (or True) scales each column and writes 16-bit results, "
        "vector scales rows and columns, tile by tile; this changes times, and the computed product stays int32",
        DEQUANTIZES, nargs="?", const="fixpipe",
        help="unit that scales the int32 sums of int8 operands: fixpipe (also --dequantize alone) scales each column and "
        "writes 16-bit results, vector scales rows and columns, tile by tile (default: not scaled). This changes times; the "
        "computed product stays int32",
    )  # fmt: skip
    unit_flag: bool = option(
        False,
        "let FIXPIPE drain finished fractals of a tile while the cube still fills the other fractals, and let "
        "the cube fill the next tile where fractals are drained",
    )
    template: Template = option(
        "", "template of AscendC's Matmul, whose scalar work is counted: norm keeps one block of A and one of B "
        "in L1 (a grid kernel then streams both operands), mdl keeps several blocks. Templates change times, "
        "not bits", TEMPLATES,
    )  # fmt: skip
    reseed_l0c: bool = option(
        False,
        "load the sum from C into L0C before each further group of n_fused blocks, so that the chain continues "
        "(default: each group starts from 0, and its sum is added to C)",
    )

    def __post_init__(self):
        integer_fields(self, "terms")
        for name in ("warm", "unit_flag", "reseed_l0c"):
            object.__setattr__(self, name, bool(getattr(self, name)))
        if isinstance(self.dequantize, bool):
            object.__setattr__(self, "dequantize", "fixpipe" if self.dequantize else "")

    def shared_options(self) -> dict[str, Any]:
        """Return the options by their names, as :func:`ascend.build_schedule` takes them."""
        return {name: getattr(self, name) for name in _SHARED}

    def check_options(self) -> None:
        """Raise ValueError for unknown values, and for options that contradict each other on any chip."""
        if self.terms not in (1, 3, 4):
            raise ValueError(
                "terms must be 1 (operands not split), 3 (all products of high and low words but low x low) or 4 (with low x "
                f"low), got {self.terms!r}"
            )
        for name, (_, row) in options_of(type(self)).items():
            value = getattr(self, name)
            if row.choices and value is not None and value not in row.choices:
                raise ValueError(f"{name} must be one of {', '.join(str(x) for x in row.choices if x)}, got {value!r}")
        if self.operand not in SPLIT_OPERANDS and self.terms != 1:
            raise ValueError(
                f"got {self.terms} terms of {self.operand} operands, but only fp16 operands are split into words: give terms=1"
            )
        if self.presplit and self.terms == 1:
            raise ValueError("got presplit, but a kernel of one term does not split its operands: leave presplit out")
        if self.dequantize and not FORMATS[self.operand].integer:
            raise ValueError(
                f"got dequantize with {self.operand} operands, but dequantize scales the sums of integer operands: leave it out"
            )
        if self.merge == "atomic" and FORMATS[self.operand].integer:
            raise ValueError(
                f"got merge='atomic', which adds FP32 sums, but {self.operand} sums are int32: take merge='reduce'"
            )

    def check_chip(self, chip: Chip) -> None:
        """Raise ValueError for options that a chip does not support."""
        if self.reseed_l0c and chip.fixpipe:
            raise ValueError(
                f"got reseed_l0c, which loads C into L0C, but {chip.name} has no path from UB into L0C: leave reseed_l0c out"
            )
        if self.unit_flag and not chip.fixpipe:
            raise ValueError(f"got unit_flag, but {chip.name} has no FIXPIPE: leave unit_flag out")
        if self.dequantize == "fixpipe" and not chip.fixpipe:
            raise ValueError(
                f"got dequantize='fixpipe', but {chip.name} has no FIXPIPE, so its vector units scale the sums: use "
                "dequantize='vector'"
            )
        if self.template:
            check_dialect("ascendc", chip)


_SHARED = tuple(options_of(SharedOptions))


@describes_options
@dataclass(frozen=True, kw_only=True)
class ScheduleOptions(SharedOptions):
    """`ScheduleOptions` lists the options of :func:`ascend.build_schedule`; None stands for the kernel's own choice."""

    split: int | None = option(
        None,
        "number of slices of k; equivalent to a grid (1, split, 1) with no resident operand",
        metavar="COUNT",
        help="number of slices of k, which are summed separately; --merge says how their sums are added (default: plan tries "
        "several numbers, simulate takes 1)",
    )
    grid: Grid | tuple[int, int, int] | None = option(
        None, "cores along m, k and n (--kernel grid or vector); with no resident operand (1, k, 1) deals tiles one by one to "
        "all cores. Default: one core for each panel, the rest along the streamed side", metavar="M,K,N",
        help="numbers of cores along m, k and n, with --kernel grid or vector. Default: one core for each panel of the resident"
        " operand, the others along the streamed operand; without a resident operand, tiles go to all cores one by one",
    )  # fmt: skip
    resident: Resident | None = option(
        None,
        'operand that stays in L1, with the kernel "grid" (default: none without a grid, else a); the kernel '
        '"paper" always keeps a',
        RESIDENTS,
    )
    swizzle: Swizzle | None = option(
        None, "order of the tiles if no operand is resident. Default: <3, 0> for m >= n and <3, 1> for m < n, as CATLASS "
        "advises. If each core owns a rectangle, <1, 0> walks it row by row (default), <1, 1> column by column",
        metavar="OFFSET,DIRECTION", help="order of the tiles, if no operand is resident. Without --grid, tiles "
        "are taken in bands of OFFSET rows (DIRECTION 0) or columns (DIRECTION "
        "1) of tiles: default 3,0 if M >= N, else 3,1. With --grid, each core "
        "takes its own tiles row by row (1,0, the default) or column by column "
        "(1,1). aswt is the adaptive order of CATLASS, which divides the last "
        "tiles among all cores",
    )  # fmt: skip
    n_fused: int | None = option(
        None, "number of blocks along k that L0C sums before the sum goes to C. Default: as many as L1 holds of "
        'the resident operand, in the kernel "grid" divided into nearly equal groups; without a resident '
        "operand all of k", metavar="COUNT",
    )  # fmt: skip
    depth: int | None = option(
        None,
        "number of L1 buffers of a streamed operand. Default: 1 or 2 by the buffering (paper's kernel), as many as fit up to 8 "
        "(grid)",
    )
    balanced: bool | None = option(None, "make tiles nearly equal; the default in a grid kernel")

    def __post_init__(self):
        super().__post_init__()
        integer_fields(self, *(x for x in ("split", "n_fused", "depth") if getattr(self, x) is not None))
        self.check_options()
        if self.grid is not None and not isinstance(self.grid, Grid):
            object.__setattr__(self, "grid", Grid(*self.grid))
        if self.n_fused is not None and self.n_fused < 1:
            raise ValueError(f"n_fused must be at least 1, got {self.n_fused}")
        if self.depth is not None and not 1 <= self.depth <= DEEPEST_STREAM:
            raise ValueError(f"depth must lie between 1 and {DEEPEST_STREAM}, got {self.depth}")
        if self.template == "norm" and (self.depth not in (None, 1) or self.buffering != "double" or self.terms > 1):
            raise ValueError(
                "template norm keeps one block in L1 and two in L0, got depth "
                f"{self.depth}, {self.buffering} buffering and {self.terms} term(s): use depth 1, double buffering and one term"
            )
        if self.split is not None and self.grid is not None and self.cores.k != self.split:
            raise ValueError(
                f"got split = {self.split} and a grid of {self.grid} cores (m, k, n), whose k divides k differently: give only "
                "one of the two"
            )

    @property
    def cores(self) -> Grid | None:
        """Return the grid that the caller gave."""
        return self.grid if self.grid is None or isinstance(self.grid, Grid) else Grid(*self.grid)


class WithOptions(SharedOptions):
    """`WithOptions` derives properties from the options alone, for a schedule and for a request to the planner."""

    m: int
    k: int
    n: int
    chip: Chip | None

    @cached_property
    def placed_on(self) -> Chip:
        """Return the chip. Raises ValueError for an unblocked schedule, which has none."""
        if self.chip is None:
            raise ValueError(
                "got an unblocked schedule, which has no chip and so no time: make a schedule with build_schedule"
            )
        return self.chip

    @cached_property
    def combination(self) -> Combination:
        """Return the combination of words that the mode stands for."""
        return combination(self.mode)

    @cached_property
    def passes(self) -> tuple[tuple[str, ...], ...]:
        """Return the terms that are computed together: one tuple for each walk over the schedule."""
        return self.combination.passes(self.terms)

    @cached_property
    def words(self) -> int:
        """Return the FP16 words of each element in L1 at a time: 2 for a kernel that fuses the terms."""
        return self.combination.words(self.terms)

    @cached_property
    def accumulators(self) -> int:
        """Return the number of L0C tiles of one C block."""
        return self.combination.accumulators(self.terms)

    @cached_property
    def copies_behind_fixpipe(self) -> int:
        """Return the number of FP32 copies of C that a last pass combines after FIXPIPE."""
        return self.combination.copies_behind_fixpipe(self.terms) if self.placed_on.fixpipe else 1

    @property
    def adds_slices_in_memory(self) -> bool:
        """Return whether slices of k can be merged atomically, without a later pass that combines terms."""
        return not (self.placed_on.fixpipe and len(self.passes) * self.accumulators > 1)

    def check_merge(self, slices: int) -> None:
        """Raise ValueError if slices of k cannot be merged as the options ask."""
        if self.merge == "atomic" and slices > 1 and not self.adds_slices_in_memory:
            raise ValueError(
                f"got merge='atomic' for {slices} slices of k on {self.placed_on.name}, where FIXPIPE adds sums from L0C to "
                "C; but "
                f"in mode {self.mode!r} a later pass must first combine the {self.terms} terms of each slice: take "
                "merge='reduce', mode='elementwise' (one sum in L0C), or one slice"
            )

    @property
    def split_elements(self) -> int:
        """Return the number of elements of A and B that the split pass reads."""
        if self.terms == 1:
            return 0
        return self.m * self.k * ("a" not in self.presplit) + self.k * self.n * ("b" not in self.presplit)

    @property
    def format(self) -> OperandFormat:
        """Return the format of the operands."""
        return FORMATS[self.operand]

    @cached_property
    def operand_bytes(self) -> int | float:
        """Return the bytes of one operand element, without block scales."""
        return self.format.bytes

    @cached_property
    def weight_bytes(self) -> float:
        """Return the bytes of one element of B in memory, without block scales."""
        return self.format.weight_bytes

    @property
    def widens(self) -> bool:
        """Return whether vector units widen B on its way to L1."""
        return bool(self.format.weight_bits)

    @cached_property
    def scalar_cycles(self) -> float:
        """Return the cycles of the scalar unit for each k block."""
        chip = self.placed_on
        return {"": 0.0, "norm": chip.norm_scalar_cycles, "mdl": chip.mdl_scalar_cycles}[self.template]

    @cached_property
    def mmad_head(self) -> float:
        """Return the cycles of a cube instruction besides its steps; they are more if each one finds an idle cube."""
        chip = self.placed_on
        return chip.norm_mmad_head if self.template == "norm" else chip.mmad_head

    @cached_property
    def fixpipe_row_extra(self) -> float:
        """Return the extra cycles of FIXPIPE for a row of C, on average.

        Rows that do not start on multiples of 32 bytes cost more.
        """
        unaligned = 1 - math.gcd(ROW_ALIGNMENT, ACCUMULATOR_BYTES * self.n) / ROW_ALIGNMENT
        return unaligned * self.placed_on.fixpipe_unaligned_cycles

    @cached_property
    def scale_bytes(self) -> float:
        """Return the bytes of block scales for each byte of an operand."""
        return self.format.scale_bytes

    @property
    def reads_rows_of_b(self) -> bool:
        """Return whether MTE2 loads pieces of ND rows of B along n."""
        return self.layout == "nd" and self.terms == 1 and self.chip is not None and bool(self.chip.nd_to_nz)

    @property
    def converts(self) -> bool:
        """Return whether a pass turns ND operands into NZ before the multiplication."""
        return self.layout != "nz" and self.terms == 1 and self.chip is not None and not self.chip.nd_to_nz
