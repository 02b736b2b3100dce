"""This module lists the published rules of AscendC's TCubeTiling in one table, :data:`RULES`.

Sources: asc-devkit (github.com/cannmirror/asc-devkit, 0da921b91), TCubeTiling, tables 1 to 3, equal to the AscendC API
reference, atlasascendc_api_07_0673; EnableMultiCoreSplitK, 07_0682. For L0 the table writes < and its text "not
exceed"; the rules follow the text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ascend.blocking import ACCUMULATOR_BYTES, ALIGNMENT, fractals
from ascend.chips.chip import Chip
from ascend.operand_formats import FORMATS
from ascend.schedule_options import Layout

#: Largest inner size of an ND matrix if intrinsicsCheck is off.
LARGEST_ND = 65535
#: iterateOrder: 0 steps along M first, 1 along N first.
ITERATE_M_FIRST, ITERATE_N_FIRST = 0, 1


def whole_k(operand: str) -> int:
    """Return the products in a whole number of fractals, along either operand: the page's C0 * fractal_num, 64 for MxMatmul."""
    return FORMATS[operand].whole_k


@dataclass(frozen=True)
class Tiling:
    """`Tiling` holds the fields of a TCubeTiling, and the facts that the rules need.

    `layout` is the layout of A and B in memory (`nz`: both in NZ; `nt`: ND with B as N x K rows). `split_k` says
    whether EnableMultiCoreSplitK(true) is called, `intrinsics_check` whether MatmulConfig has that check. `counted` is
    the number of cores that usedCoreNum counts for each cube.
    """

    fields: Mapping[str, int]
    chip: Chip
    operand: str = "fp16"
    layout: Layout = "nd"
    split_k: bool = False
    intrinsics_check: bool = True
    counted: int = 1

    def __getitem__(self, name: str) -> int:
        return self.fields[name]

    def bytes(self, *names: str) -> int:
        """Return the product of some fields, in bytes of operands."""
        product = FORMATS[self.operand].bits
        for name in names:
            product *= self[name]
        return product // 8

    def in_l1(self, depth: str, base: str) -> int:
        """Return the bytes of an operand's blocks in L1, with its block scales."""
        return self[depth] * self[base] * FORMATS[self.operand].stored(self["baseK"])

    @property
    def base_k_unit(self) -> int:
        """Return the divisor of baseK: C0 if B alone is transposed, else 16; always 32 for 8 bits and 64 for MX formats."""
        form = FORMATS[self.operand]
        return form.c0 if self.layout == "nt" and form.whole_k == ALIGNMENT else form.whole_k

    @property
    def parts(self) -> int:
        """Return the number of parts of C, and of K if it is split, counted upwards."""
        k_parts = fractals(self["Ka"], self["singleCoreK"]) if self.split_k else 1
        return fractals(self["M"], self["singleCoreM"]) * fractals(self["N"], self["singleCoreN"]) * k_parts

    def walks(self, step: str) -> int:
        """Return the number of loads to L1 along a core's k."""
        return fractals(self["singleCoreK"], self["baseK"] * self[step])


class Rule(NamedTuple):
    """`Rule` is a published rule: its name, its check, the message for a tiling that breaks it, and its source."""

    name: str
    kept: Callable[[Tiling], bool]
    broken: Callable[[Tiling], str]
    source: str


def _multiple(name: str, unit: Callable[[Tiling], int], applies: Callable[[Tiling], bool], source: str) -> Rule:
    return Rule(
        f"{name} in whole units",
        lambda t: not applies(t) or t[name] % unit(t) == 0,
        lambda t: f"{name} = {t[name]} must be a multiple of {unit(t)} ({t.operand}, {t.layout})",
        source,
    )


def _at_most(name: str, used: Callable[[Tiling], int], there: Callable[[Tiling], int], source: str) -> Rule:
    return Rule(
        f"{name} holds them",
        lambda t: used(t) <= there(t),
        lambda t: f"{name}: {used(t)} bytes needed, {there(t)} available",
        source,
    )


def _one_of(name: str, values: tuple[int, ...]) -> Rule:
    text = " or ".join(map(str, values))
    return Rule(name, lambda t: t[name] in values, lambda t: f"{name} must be {text}, got {t[name]}", "table 1")


def _within(x: str) -> Rule:
    core, size = f"singleCore{x}", "Ka" if x == "K" else x
    return Rule(
        f"{core} within {x}",
        lambda t: t[core] <= t[size],
        lambda t: f"{core} = {t[core]} must be at most {x} = {t[size]}",
        "table 1",
    )


def _base_within(x: str) -> Rule:
    base, core = f"base{x}", f"singleCore{x}"

    def unit(t: Tiling) -> int:
        return whole_k(t.operand) if x == "K" else ALIGNMENT

    return Rule(
        f"{base} within {core}",
        lambda t: t[base] < t[core] + unit(t),
        lambda t: f"{base} = {t[base]} must be at most {core} in whole fractals",
        "table 1",
    )


def _depth(x: str, y: str) -> Rule:
    depth, step, step_k = f"depth{x}1", f"step{y}", f"stepK{x.lower()}"
    return Rule(
        f"{depth} once or twice the steps",
        lambda t: t[depth] in (t[step] * t[step_k], 2 * t[step] * t[step_k]),
        lambda t: f"{depth} = {t[depth]} must be {step} x {step_k} or twice that",
        "table 1",
    )


def _one_step(x: str, y: str) -> Rule:
    step, step_k, k = f"step{y}", f"stepK{x}", f"K{x}"
    return Rule(
        f"MDL: {step} is 1 while k is walked",
        lambda t: t[step] == 1 or fractals(t[k], t["baseK"]) <= t[step_k],
        lambda t: f"{step} = {t[step]} must be 1, because K / baseK is above {step_k}",
        "table 3, MDL",
    )


def _in_nz(t: Tiling) -> bool:
    return t.layout == "nz"


def _always(t: Tiling) -> bool:
    return True


def _inner_nd(t: Tiling) -> int:
    """Return the larger inner size of A and B in ND rows."""
    return 0 if _in_nz(t) else max(t["Ka"], t["Kb"] if t.layout == "nt" else t["N"])


_SIXTEEN, _WHOLE_K, _C0 = lambda t: ALIGNMENT, lambda t: whole_k(t.operand), lambda t: FORMATS[t.operand].c0
#: Rules in the order in which a broken tiling is described: the cores, sizes, capacities, steps.
RULES: tuple[Rule, ...] = (
    Rule("usedCoreNum on the chip", lambda t: t["usedCoreNum"] <= t.counted * t.chip.cores,
         lambda t: f"usedCoreNum = {t['usedCoreNum']} must be at most the {t.counted * t.chip.cores} cores",
         "table 1; SetDim, 07_0693"),
    Rule("usedCoreNum counts the parts", lambda t: t["usedCoreNum"] == t.parts,
         lambda t: f"usedCoreNum = {t['usedCoreNum']} must be ceil(M / singleCoreM) x ... = {t.parts}", "table 1"),
    Rule("singleCoreK = K", lambda t: t.split_k or t["singleCoreK"] == t["Ka"],
         lambda t: f"singleCoreK = {t['singleCoreK']} must be K, because K is not split", "table 1; 07_0682"),
    Rule("Ka = Kb", lambda t: t["Ka"] == t["Kb"], lambda t: f"Ka = {t['Ka']} and Kb = {t['Kb']} must be equal", "table 1"),
    *(_within(x) for x in "MNK"),
    _multiple("M", _SIXTEEN, _in_nz, "table 1, A in NZ"), _multiple("Ka", _C0, _in_nz, "table 1, A in NZ"),
    _multiple("N", _SIXTEEN, _in_nz, "table 1, B in NZ"),
    _multiple("singleCoreM", _SIXTEEN, _in_nz, "table 1, A in NZ"),
    _multiple("singleCoreK", _WHOLE_K, _in_nz, "table 1, A or B in NZ: C0 * fractal_num"),
    _multiple("singleCoreN", _SIXTEEN, _in_nz, "table 1, B in NZ"),
    _multiple("baseM", _SIXTEEN, _always, "table 1"), _multiple("baseN", _SIXTEEN, _always, "table 1"),
    _multiple("baseK", lambda t: t.base_k_unit, _always, "table 1"),
    *(_base_within(x) for x in "MNK"),
    _at_most("L0A", lambda t: t.bytes("dbL0A", "baseM", "baseK"), lambda t: t.chip.l0a_bytes, "table 2"),
    _at_most("L0B", lambda t: t.bytes("dbL0B", "baseK", "baseN"), lambda t: t.chip.l0b_bytes, "table 2"),
    _at_most("L0C", lambda t: t["dbL0C"] * t["baseM"] * t["baseN"] * ACCUMULATOR_BYTES, lambda t: t.chip.l0c_bytes, "table 2"),
    _at_most("L1", lambda t: t.in_l1("depthA1", "baseM") + t.in_l1("depthB1", "baseN"),
             lambda t: t.chip.l1_bytes, "table 2"),
    *(_one_of(f"dbL0{x}", (1, 2)) for x in "ABC"), _one_of("iterateOrder", (ITERATE_M_FIRST, ITERATE_N_FIRST)),
    *(_depth(x, y) for x, y in (("A", "M"), ("B", "N"))), *(_one_step(x, y) for x, y in (("a", "M"), ("b", "N"))),
    Rule("MDL: one walk divides the other",
         lambda t: not (walks := sorted((t.walks("stepKa"), t.walks("stepKb"))))[1] % walks[0],
         lambda t: f"{t.walks('stepKa')} loads of A and {t.walks('stepKb')} of B along k: one number must divide the other",
         "table 3, MDL"),
    Rule("ND rows beyond 65535 are checked",
         lambda t: t.intrinsics_check or t.chip.name == "950" or _inner_nd(t) <= LARGEST_ND,
         lambda t: f"an ND row of {_inner_nd(t)} elements is above {LARGEST_ND}: switch intrinsicsCheck on", "table 1"),
)  # fmt: skip


def broken(tiling: Tiling) -> list[str]:
    """Return the messages of the rules in :data:`RULES` that a tiling breaks; if a field is not above 0, only this is named."""
    found = [
        f"{name} must be above 0, got {value}"
        for name, value in tiling.fields.items()
        if value < (name != "iterateOrder")
    ]
    return found or [rule.broken(tiling) for rule in RULES if not rule.kept(tiling)]
