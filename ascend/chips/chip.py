"""This module defines a chip as data: every number has a unit and a provenance.

A :class:`Chip` is read from a TOML row (the built-in ones lie in :mod:`ascend.chips`) or from a CANN platform file
(``Ascend910A.ini``). The table :data:`PARAMETERS` lists the numbers of a chip; :mod:`ascend.chips.files` reads the
files.

Rates are bytes per cycle of one core, latencies are cycles of that core, sizes are bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from dataclasses import replace as dataclass_replace
from typing import Any, Literal, NamedTuple

import numpy as np

from ascend.operand_formats import FORMATS
from tensorcore_models.machine.fp_state import members_in_default_fp_state

#: Evidence for a number. ``nominal``: the vendor's file or the paper states it; ``measured``: a
#: published measurement (the source names the chip); ``assumed``: carried over from another chip or inferred;
#: ``calibrated``: fitted.
Kind = Literal["nominal", "measured", "assumed", "calibrated"]
KINDS: tuple[str, ...] = ("nominal", "measured", "assumed", "calibrated")


class Provenance(NamedTuple):
    """`Provenance` says where a number comes from."""

    kind: str
    source: str


class Parameter(NamedTuple):
    """`Parameter` describes one number that every chip has."""

    unit: str
    meaning: str
    integer: bool = False
    minimum: float = 0.0
    default: float | None = None  # value for files that lack the parameter; None: the file must state it
    default_source: str = ""
    default_nanoseconds: float | None = None  # replaces `default`: a time that becomes cycles at the chip's clock
    default_from: str = ""  # replaces `default`: the parameter whose value is taken
    ini_key: str = ""  # "Section.key" of CANN's platform files


#: Clock at which the published 910B latencies were counted: 910B1's platform file.
MEASURED_AT_MHZ = 1850
MEASURED_910B = "measured on 910B (second generation), assumed to hold in cycles"
MEASURED_910B_TIME = "measured on 910B at 1850 MHz, assumed to hold in nanoseconds"

#: Every parameter of a chip; the keys are the field names of :class:`Chip`.
PARAMETERS: dict[str, Parameter] = {
    "cores": Parameter("cores", "AI cores that hold a cube unit", True, 1, ini_key="SoCInfo.ai_core_cnt"),
    "frequency_mhz": Parameter("MHz", "clock of the cube unit", False, 1e-9, ini_key="AICoreSpec.cube_freq"),
    "cube_m": Parameter("rows", "rows of one FP16 cube step", True, 1, ini_key="AICoreSpec.cube_m_size"),
    "cube_k": Parameter("products", "depth of one FP16 cube step", True, 1, ini_key="AICoreSpec.cube_k_size"),
    "cube_n": Parameter("columns", "columns of one FP16 cube step", True, 1, ini_key="AICoreSpec.cube_n_size"),
    "cube_fp32_k": Parameter(
        "products", "depth of one FP32 cube step, 0 without FP32", True, 0, 0, "no FP32 on the cube unit",
    ),
    "cube_bf16_k": Parameter(
        "products", "depth of one BF16 cube step, 0 without BF16", True, 0, 0, "no BF16 on the cube unit",
    ),
    "cube_hf32_k": Parameter(
        "products", "depth of one HF32 cube step, 0 without HF32", True, 0, 0, "no HF32 on the cube unit",
    ),
    "cube_int8_k": Parameter(
        "products", "depth of one INT8 cube step, 0 without INT8", True, 0, 32,
        "Huawei documentation of the cube unit: 16x32x16 for int8",
    ),
    "cube_fp8_k": Parameter(
        "products", "depth of one FP8 or HiFloat8 cube step, 0 without them", True, 0, 0, "no FP8 on the cube unit",
    ),
    "cube_mxfp8_k": Parameter(
        "products", "depth of one MXFP8 cube step, 0 without MXFP8", True, 0, 0, "no MXFP8 on the cube unit",
    ),
    "cube_mxfp4_k": Parameter(
        "products", "depth of one MXFP4 cube step, 0 without MXFP4", True, 0, 0, "no MXFP4 on the cube unit",
    ),
    "l0a_bytes": Parameter("B", "L0A buffer", True, 1, ini_key="AICoreSpec.l0_a_size"),
    "l0b_bytes": Parameter("B", "L0B buffer", True, 1, ini_key="AICoreSpec.l0_b_size"),
    "l0c_bytes": Parameter("B", "L0C buffer (accumulators)", True, 1, ini_key="AICoreSpec.l0_c_size"),
    "l1_bytes": Parameter("B", "L1 buffer", True, 1, ini_key="AICoreSpec.l1_size"),
    "ub_bytes": Parameter("B", "unified buffer that a kernel can use", True, 1, ini_key="AICoreSpec.ub_size"),
    "l2_bytes": Parameter("B", "L2 cache shared by the cores", True, 0, ini_key="SoCInfo.l2_size"),
    "l2_usable_bytes": Parameter(
        "B", "part of L2 that keeps operands from one load to the next", True, 0, default_source="all of L2",
        default_from="l2_bytes",
    ),
    "nd_row_bytes": Parameter(
        "B", "extra cost of a piece of an ND row, unless it is whole lines of 512 B or runs along k within one line", False, 0,
        550,
        "fitted to CATLASS on 910B: K = 8000 on 910B2, and a row-major B in pieces of 640 bytes (252.4 us, 139.6 as zN)",
    ),
    "nd_memory_row_bytes": Parameter(
        "B", "extra cost of a piece of an ND row that comes from memory", False, 0, 170,
        "fitted to CATLASS on 910B: a row-major B in pieces of 512 bytes takes 238.8 us where a zN one takes 181.4",
    ),
    "nd_least_bytes": Parameter(
        "B", "least cost of a piece of an ND row", False, 0, 256,
        "fitted to asc-devkit on 910B1: pieces of 128 bytes (8192^3, cases 1 and 3) load at 37 to 43 B/cycle, of 256 at 81",
    ),
    "nd_part_bytes": Parameter(
        "B", "extra cost of a piece of an ND row along n that is shorter than a line of 512 B", False, 0,
        default_source="as any piece that is not whole lines", default_from="nd_row_bytes",
    ),
    "nd_sector_bytes": Parameter(
        "B", "extra cost of each 32 B of an ND row if rows start on multiples of 32 B but not of 128 B", False, 0, 0,
        "not measured on this chip",
    ),
    "nd_unaligned_bytes": Parameter(
        "B", "extra cost of each 32 B of an ND row if rows do not start on multiples of 32 B", False, 0, 0,
        "not measured on this chip",
    ),
    "hbm_bytes_per_second": Parameter("B/s", "memory bandwidth of the chip, reads and writes together", False, 1e-9),
    "l2_read_rate": Parameter(
        "B/cycle", "rate of one core's loads that hit L2", False, 1e-9, ini_key="AICoreMemoryRates.l2_read_rate",
    ),
    "memory_read_rate": Parameter(
        "B/cycle", "rate of one core's loads that miss L2", False, 1e-9,
        default_source="no limit of its own: as the path from L2", default_from="l2_read_rate",
    ),
    "launch_us": Parameter(
        "us", "time from the start of a kernel to its first load, plus that from its last store to its end", False, 0, 5,
        "assumed; CATLASS's published small products leave 5 to 11 us unexplained",
    ),
    "launch_core_us": Parameter("us", "extra launch time for each core that is started", False, 0, 0, "no such share"),
    "cold_launch_us": Parameter(
        "us", "extra launch time unless the same kernel has just run, because code and arguments come from memory", False,
        0, 0, "not told apart on this chip",
    ),
    "vector_launch_us": Parameter(
        "us", "extra time of a kernel that starts vector cores beside the cubes and waits for them", False, 0, 5,
        "CATLASS (0dfcf9df), 102_dynamic_optimized_matmul: 1 to 5 us; 5 fits its 128 x 1024 x 256 in INT8 (18.64 us)",
    ),
    "l2_write_rate": Parameter(
        "B/cycle", "rate of one core's writes to L2", False, 1e-9, ini_key="AICoreMemoryRates.l2_write_rate",
    ),
    "l1_to_l0a_rate": Parameter("B/cycle", "L1 to L0A", False, 1e-9, ini_key="AICoreMemoryRates.l1_to_l0_a_rate"),
    "l1_to_l0b_rate": Parameter("B/cycle", "L1 to L0B", False, 1e-9, ini_key="AICoreMemoryRates.l1_to_l0_b_rate"),
    "l1_to_l0_scale_rate": Parameter(
        "B/cycle", "block scales of MX operands from L1 to L0", False, 1e-9, default_source="as L1 to L0A",
        default_from="l1_to_l0a_rate",
    ),
    "l1_to_ub_rate": Parameter("B/cycle", "L1 to UB", False, 1e-9, ini_key="AICoreMemoryRates.l1_to_ub_rate"),
    "l0c_to_ub_rate": Parameter("B/cycle", "L0C to UB", False, 1e-9, ini_key="AICoreMemoryRates.l0_c_to_ub_rate"),
    "ub_to_l2_rate": Parameter("B/cycle", "UB to L2", False, 1e-9, ini_key="AICoreMemoryRates.ub_to_l2_rate"),
    "ub_to_ddr_rate": Parameter("B/cycle", "UB to memory", False, 1e-9, ini_key="AICoreMemoryRates.ub_to_ddr_rate"),
    "ub_to_l1_rate": Parameter("B/cycle", "UB to L1", False, 1e-9, ini_key="AICoreMemoryRates.ub_to_l1_rate"),
    "vector_rate": Parameter(
        "B/cycle", "FP32 results of the vector unit", False, 1e-9, 256, "2048-bit vectors, one a cycle",
    ),
    "widened_rate": Parameter(
        "B/cycle", "rate at which the vector units of one cube write widened weights; 0: they widen none",
        False, 0, 0, "weights narrower than the activations: no kernel is published for this chip, or none is timed",
    ),
    "widened_to_l1": Parameter(
        "flag", "1: vector units write widened weights to L1; 0: they write them to memory, where L2 keeps them", True, 0, 0,
        "CATLASS (0dfcf9df), 30_w8a16_matmul: a workspace in memory between vector cores and cubes",
    ),
    "fixpipe": Parameter(
        "flag", "1: FIXPIPE moves L0C to memory; 0: the vector unit moves it through UB", True, 0, 0,
        "no support_fixpipe in the file", ini_key="AICoreSpec.support_fixpipe",
    ),
    "fixpipe_rate": Parameter(
        "B/cycle", "L0C to memory through FIXPIPE", False, 1e-9, 73, "taken as the UB to GM rate " + MEASURED_910B,
    ),
    "fixpipe_head": Parameter(
        "cycles", "head of one FIXPIPE transfer", False, 0, 164,
        "measured on 910B: pypto (e2d0f78ae), L0CostModel, drain_fixed_cycles",
    ),
    "fixpipe_row_cycles": Parameter(
        "cycles", "least time of one row of C in FIXPIPE", False, 0, 4.45,
        "measured on 910B: pypto (e2d0f78ae), L0CostModel, drain_row_cycles",
    ),
    "fixpipe_unaligned_cycles": Parameter(
        "cycles", "extra time of a row of C in FIXPIPE that does not start on a multiple of 32 B", False, 0, 0,
        "not measured on this chip",
    ),
    "nd_to_nz": Parameter(
        "flag", "1: MTE2 turns ND rows into NZ fractals on the way to L1; 0: a pass over the matrix turns them", True, 0, 0,
        "not stated for this chip",
    ),
    "gm_to_l1_latency": Parameter(
        "cycles", "time to the first byte of a load that hits L2", False, 0, default_source=MEASURED_910B_TIME,
        default_nanoseconds=193 / MEASURED_AT_MHZ * 1e3,
    ),
    "memory_read_latency": Parameter(
        "cycles", "time to the first byte of a load from memory", False, 0, default_source=MEASURED_910B_TIME,
        default_nanoseconds=347 / MEASURED_AT_MHZ * 1e3,
    ),
    "memory_write_latency": Parameter(
        "cycles", "time until a store is complete", False, 0, default_source=MEASURED_910B_TIME,
        default_nanoseconds=203 / MEASURED_AT_MHZ * 1e3,
    ),
    "l1_to_l0a_latency": Parameter("cycles", "head of an L1 to L0A move", False, 0, 2, MEASURED_910B),
    "l1_to_l0b_latency": Parameter("cycles", "head of an L1 to L0B move", False, 0, 2, MEASURED_910B),
    "mmad_head": Parameter("cycles", "head of one matrix multiply instruction", False, 0, 23, MEASURED_910B),
    "norm_mmad_head": Parameter(
        "cycles", "head of one matrix multiply instruction in template Norm, where each one finds an idle cube", False, 0, 63,
        "derived from asc-devkit on 910B1: aic_mac_time of 8192^3, case 1",
    ),
    "norm_scalar_cycles": Parameter(
        "cycles", "scalar work of AscendC's Matmul for each block, template Norm", False, 0, 449,
        "derived from asc-devkit on 910B1: aic_scalar_time of 8192^3, cases 0 and 1",
    ),
    "mdl_scalar_cycles": Parameter(
        "cycles", "scalar work of AscendC's Matmul for each block, template MDL", False, 0, 248,
        "derived from asc-devkit on 910B1: aic_scalar_time of 8192^3, case 5",
    ),
    "vector_head": Parameter(
        "cycles", "head of one vector or L0C to UB instruction", False, 0, 23, "taken equal to the head of MMAD",
    ),
    "queue_depth": Parameter("requests", "outstanding requests of one pipe", True, 1, 32, MEASURED_910B),
    "event_ids": Parameter("flags", "flags for each pair of pipes", True, 1, 8, MEASURED_910B),
    "non_overlapped_fraction": Parameter(
        "1", "fraction of a B load that stops the cube in spite of double buffers (the paper's alpha)", False, 0, 0,
        "ideal overlap",
    ),
    "sync_cycles_per_block": Parameter(
        "cycles", "cube cycles lost to flags and scalar work for every block", False, 0, 0, "free synchronisation",
    ),
}  # fmt: skip

#: Named choices of a chip: what a result beyond the largest number becomes, and how FP32 operands are rounded to HF32.
FACTS: dict[str, tuple[str, ...]] = {"overflow": ("saturate", "inf"), "hf32_rounding": ("", "rne", "rna", "rnz", "rz")}

#: The two parameters that :mod:`ascend.reports.calibration` may set.
CALIBRATED_PARAMETERS = ("non_overlapped_fraction", "sync_cycles_per_block")


@members_in_default_fp_state
@dataclass(frozen=True)
class Chip:
    """`Chip` describes one chip; the rows of :data:`PARAMETERS` list its numeric fields with their units.

    Parameters
    ----------
    name, soc_version : str
        Short name ("910A") and CANN's SoC_version ("Ascend910A").
    provenance : mapping of str to Provenance
        Source of each numeric field.
    overflow : {"saturate", "inf"}
        Result of an overflow: the largest number of the format ("saturate") or an infinity ("inf").
    hf32_rounding : {"", "rne", "rna", "rnz", "rz"}
        Rounding of FP32 operands to HF32: toward zero ("rz"), or to nearest with ties to even ("rne"), away from zero ("rna")
        or toward zero ("rnz"). "" stands for a chip without HF32.
    aliases : tuple of str
        Other names.
    calibrated : mapping of str to float
        Fitted values of parameters, which are used only after :meth:`with_calibration`.
    calibration_source : str
        Data to which `calibrated` was fitted.

    Raises
    ------
    ValueError
        If a numeric field is below its minimum, is not an integer although it must be, or has no provenance.
    """

    name: str
    soc_version: str
    cores: int
    frequency_mhz: float
    cube_m: int
    cube_k: int
    cube_n: int
    cube_fp32_k: int
    cube_bf16_k: int
    cube_hf32_k: int
    cube_int8_k: int
    cube_fp8_k: int
    cube_mxfp8_k: int
    cube_mxfp4_k: int
    l0a_bytes: int
    l0b_bytes: int
    l0c_bytes: int
    l1_bytes: int
    ub_bytes: int
    l2_bytes: int
    l2_usable_bytes: int
    nd_row_bytes: float
    nd_memory_row_bytes: float
    nd_least_bytes: float
    nd_part_bytes: float
    nd_sector_bytes: float
    nd_unaligned_bytes: float
    hbm_bytes_per_second: float
    l2_read_rate: float
    memory_read_rate: float
    launch_us: float
    launch_core_us: float
    cold_launch_us: float
    vector_launch_us: float
    widened_rate: float
    widened_to_l1: int
    l2_write_rate: float
    l1_to_l0a_rate: float
    l1_to_l0b_rate: float
    l1_to_l0_scale_rate: float
    l1_to_ub_rate: float
    l0c_to_ub_rate: float
    ub_to_l2_rate: float
    ub_to_ddr_rate: float
    ub_to_l1_rate: float
    vector_rate: float
    fixpipe: int
    fixpipe_rate: float
    fixpipe_head: float
    fixpipe_row_cycles: float
    fixpipe_unaligned_cycles: float
    nd_to_nz: int
    gm_to_l1_latency: float
    memory_read_latency: float
    memory_write_latency: float
    l1_to_l0a_latency: float
    l1_to_l0b_latency: float
    mmad_head: float
    norm_mmad_head: float
    norm_scalar_cycles: float
    mdl_scalar_cycles: float
    vector_head: float
    queue_depth: int
    event_ids: int
    non_overlapped_fraction: float
    sync_cycles_per_block: float
    provenance: Mapping[str, Provenance] = field(repr=False, compare=False)
    overflow: Literal["saturate", "inf"] = "inf"
    hf32_rounding: str = ""
    aliases: tuple[str, ...] = ()
    calibrated: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)
    calibration_source: str = field(default="", repr=False, compare=False)

    def __post_init__(self):
        for name, parameter in PARAMETERS.items():
            value = getattr(self, name)
            # Products of NumPy's numbers wrap, and JSON has no such numbers.
            if isinstance(value, np.integer | np.floating):
                value = value.item()
                object.__setattr__(self, name, value)
            check_value(name, parameter, value, f"chip {self.name}")
            if name not in self.provenance:
                raise ValueError(f"chip {self.name}: {name} has no provenance: give its kind and source")
        for name, known in FACTS.items():
            if getattr(self, name) not in known:
                raise ValueError(
                    f"chip {self.name}: {name} must be one of {', '.join(x for x in known if x)}, got {getattr(self, name)!r}"
                )
        if self.non_overlapped_fraction > 1:
            raise ValueError(
                f"chip {self.name}: non_overlapped_fraction must be at most 1, got {self.non_overlapped_fraction}"
            )

    @property
    def cycles_per_second(self) -> float:
        """Return the clock frequency in Hz."""
        return self.frequency_mhz * 1e6

    @property
    def hbm_bytes_per_cycle(self) -> float:
        """Return the memory bandwidth of the whole chip in bytes per cycle."""
        return self.hbm_bytes_per_second / self.cycles_per_second

    def launch_seconds(self, cores: Any, warm: bool) -> Any:
        """Return the time in seconds to launch a kernel on a number of cores (or on each number of an array)."""
        return 1e-6 * (self.launch_us + self.launch_core_us * cores + (not warm) * self.cold_launch_us)

    def cube_flops_per_cycle(self, operand: str = "fp16") -> int:
        """Return the FLOPs of one core's cube in one cycle; a multiply and an add count as two."""
        return 2 * self.cube_m * self.cube_step_k(operand) * self.cube_n

    def cube_step_k(self, operand: str = "fp16") -> int:
        """Return the number of products in one cube step, for operands of a format of
        :data:`ascend.operand_formats.FORMATS`.

        Raises
        ------
        ValueError
            If the operand format is unknown, or the cube does not multiply it; the message lists the formats that it
            multiplies.
        """
        depths = {
            name: 0 if row.weight_bits and not self.widened_rate else getattr(self, row.depth)
            for name, row in FORMATS.items()
        }
        if operand not in depths:
            raise ValueError(f"operand must be one of {', '.join(depths)}, got {operand!r}")
        if FORMATS[operand].weight_bits and not self.widened_rate:
            raise ValueError(
                f"got {operand}, whose weights the vector units convert to the cube's format. Only for Atlas A2, A3 and Ascend "
                f"950 such a conversion is published, not for {self.name}: convert B first, and plan with the format after "
                f"the conversion"
            )
        if not depths[operand]:
            taken = ", ".join(name for name, depth in depths.items() if depth)
            raise ValueError(f"the cube of {self.name} multiplies {taken}, got {operand}: take one of these formats")
        return depths[operand]

    def peak_flops(self, operand: str = "fp16") -> float:
        """Return the peak of all cubes in FLOP/s: 262.1e12 for FP16 on 910A (Xue et al. round it to 256e12)."""
        return self.cores * self.cube_flops_per_cycle(operand) * self.cycles_per_second

    def replace(self, **changes) -> "Chip":
        """Return the chip with changed parameters, for what-if studies; their provenance becomes "assumed: what-if".

        If the size of L2 is changed, `l2_usable_bytes` (the part that operands can use) changes in proportion, unless it is
        given, too.

        Raises
        ------
        ValueError
            If a name is not a parameter; the message lists the parameters.
        """
        own = {f.name for f in fields(self)}
        unknown = sorted(set(changes) - own)
        if unknown:
            raise ValueError(f"a chip has no parameter {', '.join(unknown)}; it has {', '.join(PARAMETERS)}")
        if "l2_bytes" in changes and "l2_usable_bytes" not in changes and self.l2_bytes:
            changes["l2_usable_bytes"] = int(changes["l2_bytes"] * self.l2_usable_bytes / self.l2_bytes)
        provenance = dict(changes.pop("provenance", self.provenance))
        for name in changes:
            if name in PARAMETERS and changes[name] != getattr(self, name):
                provenance[name] = Provenance("assumed", "what-if")
        return dataclass_replace(self, provenance=provenance, **changes)

    def with_calibration(self) -> "Chip":
        """Return the chip with its fitted parameters in place of the nominal ones.

        Raises
        ------
        ValueError
            If the chip has no fitted parameters.
        """
        if not self.calibrated:
            raise ValueError(
                f"chip {self.name} has no calibrated parameters, because no published measurement exists to "
                "fit them to: use the chip without calibration"
            )
        provenance = dict(self.provenance)
        for name in self.calibrated:
            provenance[name] = Provenance("calibrated", self.calibration_source)
        fitted: dict = dict(self.calibrated)
        return dataclass_replace(self, provenance=provenance, **fitted)

    def describe(self) -> list[tuple[str, float, str, str, str]]:
        """Return (parameter, value, unit, kind of provenance, source) for each numeric field."""
        return [
            (name, getattr(self, name), parameter.unit, *self.provenance[name])
            for name, parameter in PARAMETERS.items()
        ]


def check_value(name: str, parameter: Parameter, value: object, where: str) -> None:
    """Raise ValueError, with a message that begins with `where`, unless `value` is a number that `parameter` admits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where}: {name} must be a number ({parameter.unit}), got {value!r}")
    if not parameter.minimum <= value < float("inf"):
        least = "above 0" if 0 < parameter.minimum < 1 else f"at least {parameter.minimum:g}"
        raise ValueError(f"{where}: {name} must be {least} ({parameter.unit}) and finite, got {value!r}")
    if parameter.integer and value != int(value):
        raise ValueError(f"{where}: {name} must be a whole number ({parameter.unit}), got {value!r}")
