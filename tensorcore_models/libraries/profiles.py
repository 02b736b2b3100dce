"""This module reads a profiler's and cuBLASLt's log of one product into a `ProductProfile`.

A row is a mapping with these fields:

- `m`, `n`, `k`: sizes of the product;
- `kernels`: kernel names that a profiler lists, alone or each with a time;
- `configuration`: cuBLASLt's log, as text ("algoId=66 tile=MATMUL_TILE_64x8 ... numSplitsK=2"), as a mapping whose `algo`
  (and `computeDesc`, `Adesc`, ...) are such texts, or as a mapping of fields, also with the names of
  :data:`.cublaslt_tables.FIELDS`;
- `operands`: formats of A and B; `dtype` (or `out`, `output`): format of the result;
- `layout`: memory order of torch's A and B ("n" by rows, "t" by columns); `fast`: torch's use_fast_accum;
- `gpu` and `cublas` (or `cuda`): GPU and library version on which the product ran.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..formats import get_format
from ..integers import checked_integer
from . import profile_tables as tables
from .profile_tables import FAMILIES, KernelFamily
from .recipe import Unknown

#: Shorthands of a pair of FP8 operands.
_PAIRS = {
    "e4e4": ("e4m3fn", "e4m3fn"),
    "e4e5": ("e4m3fn", "e5m2"),
    "e5e4": ("e5m2", "e4m3fn"),
    "e5e5": ("e5m2", "e5m2"),
}
#: Formats by type names of torch and cuBLAS.
_NAMES = {
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32", "float64": "fp64",
    "double": "fp64", "int32": "s32", "int8": "s8", "float8_e4m3fn": "e4m3fn", "float8_e5m2": "e5m2", "R_16F": "fp16",
    "R_16BF": "bf16", "R_32F": "fp32", "R_64F": "fp64", "R_8F_E4M3": "e4m3fn", "R_8F_E5M2": "e5m2", "R_8I": "s8",
    "R_32I": "s32",
}  # fmt: skip
#: Names in the log of the fields of cublasLtMatmulAlgoConfigGetAttribute.
_LOGGED = {"ALGO_ID": "algoId", "SPLITK_NUM": "numSplitsK", "REDUCTION_SCHEME": "reductionScheme",
           "CUSTOM_OPTION": "customOption", "STAGES_ID": "stages"}  # fmt: skip
#: Names in the log of fields that decide the order, and of fields that do not.
LOGGED = tuple(_LOGGED.values())
MORE_LOGGED = ("tile", "clusterShape", "innerShape", "ctaSwizzling")
_SCHEMES = {0: "NONE", 1: "INPLACE", 2: "COMPUTE_TYPE", 4: "OUTPUT_TYPE"}
#: torch's memory orders of A and B by their spelling in cuBLAS, which computes the transposed product.
LAYOUTS = {"nn": "nn", "tn": "nt", "nt": "tn", "tt": "tt"}


@dataclass(frozen=True)
class ProductProfile:
    """`ProductProfile` holds the facts of one product as it ran.

    Attributes
    ----------
    m, n, k : int
        Sizes: A is (m, k), B is (k, n).
    family : KernelFamily
        Family of the kernel that multiplied.
    parts : dict
        Groups of the family's pattern in the kernel's name.
    kernel : str
        Name of the kernel.
    partials : str or None
        Format of the partial sums that a joining kernel reads; None if no kernel joins.
    formats : (str, str)
        Formats of A and B.
    out_format : str
        Format of the result.
    layout : str or None
        torch's memory order of A and B.
    fields : dict
        Fields of cuBLASLt's configuration with the names of its log.
    scales : {None, "tensor", "row", "block"}
        Kind of scaling.
    slow : bool
        Whether FP8 accumulators are added outside the unit at intervals.
    cleared : bool
        Whether memory was cleared before, as for buffers in which slices are added.
    """

    m: int
    n: int
    k: int
    family: KernelFamily
    parts: Mapping[str, str | None]
    kernel: str
    partials: str | None
    formats: tuple[str, str]
    out_format: str
    layout: str | None
    fields: Mapping[str, str] = field(default_factory=dict)
    scales: str | None = None
    slow: bool = False
    cleared: bool = False

    def number(self, name: str) -> int | None:
        """Return a field of the configuration as an integer, None if the field is not set."""
        text = self.fields.get(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"the configuration's {name} is {text!r}, expected an integer") from None


def unknown(what: str, field: str, known=()) -> Unknown:
    """Return the error for a profile whose result cannot be predicted."""
    advice = "Record such products on the GPU (python -m mpgemm.traces.record_products) and compare with whodunit"
    return Unknown(what, field=field, known=known, advice=advice)


def read_profile(row: Mapping) -> ProductProfile:
    """Return the record of a row.

    Raises Unknown for a kernel of no known family, TypeError and ValueError for fields that are missing or wrong.
    """
    if not isinstance(row, Mapping):
        raise TypeError(f"expected a profile as a mapping of fields (m, n, k, kernels, ...), got {type(row).__name__}")
    if "failed" in row:
        raise ValueError(f"the profile's call failed ({row['failed']}): give the profile of a product that ran")
    m, n, k = (_size(row, name) for name in "mnk")
    logged = _logged(row.get("configuration"))
    fields = _fields(logged)
    names, cleared = _kernels(row.get("kernels"))
    family, parts, kernel, partials = _multiplying(names, fields, operands_of_row(row))
    nvjet = _nvjet(parts) if family.name == "nvjet" else {}
    formats = _formats(row, logged, family, parts, nvjet)
    return ProductProfile(
        m, n, k, family, parts, kernel, partials, formats, _output(row, logged, nvjet), _layout(row, parts, logged), fields,
        *_scaling(row, logged, nvjet, formats), cleared,
    )  # fmt: skip


def _size(row: Mapping, name: str) -> int:
    if name not in row:
        raise ValueError(f"the profile lacks {name}: give m, n, k, the kernels and cuBLASLt's log")
    size = checked_integer(row[name], name)
    if size < 1:
        raise ValueError(f"the profile's {name} is {size}, expected a positive integer")
    return size


def _kernels(given) -> tuple[list[str], bool]:
    """Return the names of the kernels that belong to the product, and whether memory is cleared before."""
    if given is None:
        return [], False
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"kernels is {given!r}, expected a list of names or of (name, time)")
    names = [each if isinstance(each, str) else each[0] for each in given]
    return [name for name in names if not tables.BESIDE.search(name)], any(name.startswith("Memset") for name in names)


def _multiplying(names: list[str], fields: Mapping, operands) -> tuple[KernelFamily, dict, str, str | None]:
    """Return the family, name parts and name of the kernel that multiplies, and the format of partial sums."""
    found: dict[str, tuple[KernelFamily, dict]] = {}
    partials = None
    for name in names:
        joins = tables.REDUCTION.search(name)
        if joins:
            partials = tables.TYPES[joins["partials"]]
            continue
        fits = [(family, match.groupdict()) for family in FAMILIES if (match := family.match(name))]
        if not fits:
            raise unknown(f"the kernel {name[:160]!r} is not known", "kernels", (family.name for family in FAMILIES))
        found[name] = fits[0]
    families = {family.name for family, _ in found.values()}
    if len(families) > 1:
        raise unknown(f"several kernels multiply: {', '.join(found)}", "kernels", ("the one of this product",))
    if not found:
        return (*_by_algorithm(names, fields, operands), partials)
    name, (family, parts) = list(found.items())[-1]  # the kernel of a split k comes last
    match = family.match(name)
    return family, parts, name if match is None else match[0], partials


def _by_algorithm(names: list[str], fields: Mapping, operands) -> tuple[KernelFamily, dict, str]:
    """Return the family by algoId and operands, and the tile of k by the stages, for a profile without kernel names."""
    if names:
        raise unknown(f"only a kernel that joins slices is named, {names[0][:80]!r}", "kernels")
    if "algoId" not in fields:
        raise ValueError(
            "the profile names neither kernels nor an algoId: give the kernels' names or cuBLASLt's configuration"
        )
    number = fields["algoId"]
    formats = [get_format(x).name for x in operands or ()]
    fits = [f for f in FAMILIES if number in map(str, f.algorithms) and (not formats or formats[0] in f.units)]
    fits = [f for f in fits if f.cut != "lanes"] or fits[:1]  # the two matrix-vector families have one table of options
    if len(fits) != 1:
        known = sorted({a for f in FAMILIES for a in f.algorithms})
        raise unknown(f"algoId {number} with operands {formats or 'without format'} is not known", "algoId", known)
    stages = re.fullmatch(r"(?:MATMUL_STAGES_)?(\d+)x(?:\d+|AUTO)", fields.get("stages", ""))
    parts = {"tile": stages[1] if stages else None}
    return fits[0], parts, f"algoId {number}"


def operands_of_row(row: Mapping) -> tuple[str, str] | None:
    """Return the formats of A and B that a row names, None if it names none."""
    given = row.get("operands")
    if given is None:
        return None
    if isinstance(given, str):
        pair = _PAIRS.get(given, (given, given))
    else:
        pair = tuple(given)
        if len(pair) != 2:
            raise ValueError(f"operands is {given!r}, expected one format or a pair (A, B)")
    a, b = (_named(x) for x in pair)
    return a, b


def _named(name) -> str:
    """Return the package's name of a format from its name in torch, cuBLAS or the package."""
    text = str(name).removeprefix("torch.")
    return get_format(_NAMES.get(text, text)).name


def _logged(configuration) -> dict[str, str]:
    """Return a configuration as a flat dict of the fields of `algo` and of the descriptors, such as "Adesc.type"."""
    if configuration is None:
        return {}
    if isinstance(configuration, str):
        configuration = {name: text.strip("[]") for name, text in re.findall(r"(\w+)=(\[[^\]]*\]|\S*)", configuration)}
    if not isinstance(configuration, Mapping):
        raise TypeError(f"configuration is {type(configuration).__name__}, expected text or a mapping")
    flat: dict[str, str] = {}
    for name, value in configuration.items():
        if isinstance(value, str) and "=" in value:
            prefix = "" if name == "algo" else f"{name}."
            flat |= {prefix + key: text for key, text in re.findall(r"(\w+)=(\S*)", value)}
        elif value is not None:
            flat[_LOGGED.get(str(name), str(name))] = str(value)
    return flat


def _fields(logged: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of an algorithm that decide the order, with reduction schemes without their prefix."""
    fields = {name: logged[name] for name in _LOGGED.values() if name in logged}
    if "reductionScheme" in fields:
        text = fields["reductionScheme"].removeprefix("REDUCTION_SCHEME_")
        fields["reductionScheme"] = _SCHEMES.get(int(text), text) if text.isdigit() else text
    if fields.get("stages", "").isdigit():
        fields["stages"] = _stages(int(fields["stages"]))
    return fields


def _stages(number: int) -> str:
    """Return the stages of a number of cublasLtMatmulStages_t as text; 1 to 24 are 16x1 to 128x6."""
    if 1 <= number <= 24:
        return f"{16 << (number - 1) // 6}x{(number - 1) % 6 + 1}"
    named = {0: "", 25: "32x10", 26: "8x4", 27: "16x10", 28: "8x5", 31: "8x3", 32: "8xAUTO", 33: "16xAUTO", 34: "32xAUTO",
             35: "64xAUTO", 36: "128xAUTO", 37: "256xAUTO"}  # fmt: skip
    if number not in named:
        raise unknown(f"stages {number} is not known", "stages", sorted(named))
    return named[number]


def _nvjet(parts: Mapping) -> dict:
    """Parse an nvjet kernel's name: formats of B, A and the output, and features."""
    types = parts.get("types") or ""
    if not types:
        return {}
    letters = [tables.LETTERS.get(letter) for letter in types]
    if None in letters or len(types) not in (3, 5) or types[-2] != "s":
        raise unknown(
            f"the types {types!r} of an nvjet kernel are not known", "kernels", ("hsh", "tst", "qqtst", "...")
        )
    features = [x for x in (parts.get("features") or "").split("_") if x]
    new = [x for x in features if x not in tables.NVJET_FEATURES]
    if new:
        raise unknown(f"the nvjet feature {new[0]!r} is not known", "kernels", tables.NVJET_FEATURES)
    b, a = letters[:2] if len(types) == 5 else (letters[0],) * 2
    return {"formats": (a, b), "output": letters[-1], "effects": {tables.NVJET_FEATURES[x] for x in features} - {None}}


def _formats(row: Mapping, logged: Mapping, family: KernelFamily, parts: Mapping, nvjet: Mapping) -> tuple[str, str]:
    """Return the formats of A and B from the row, or else from the kernel's name, or else from cuBLASLt's log."""
    given = operands_of_row(row)
    by_name = nvjet.get("formats")
    if parts.get("types") in tables.TYPES:
        by_name = (tables.TYPES[str(parts["types"])],) * 2
    elif len(family.units) == 1:
        by_name = (*family.units,) * 2
    if given == ("tf32", "tf32") and family.cut == "lanes":
        given = None  # matrix-vector kernels do not round FP32, even if TF32 is allowed
    if given is not None and by_name is not None and given != by_name:
        raise ValueError(f"operands are {given}, but the kernel multiplies {by_name}: give the formats that ran")
    found = given or by_name
    if found is None and "Bdesc.type" in logged and "Adesc.type" in logged:
        found = _named(logged["Bdesc.type"]), _named(logged["Adesc.type"])
    if found is None or found[0] not in family.units:
        raise unknown(f"operands {found} of {family.name} kernels are not known", "operands", family.units)
    return found


def _output(row: Mapping, logged: Mapping, nvjet: Mapping) -> str:
    given = next((row[name] for name in ("dtype", "output", "out") if row.get(name)), None)
    by_name = nvjet.get("output")
    if given is None:
        given = by_name or logged.get("Ddesc.type")
    if given is None:
        raise ValueError("the profile does not state its output format: give dtype, such as 'torch.float32'")
    found = _named(given)
    if by_name is not None and found != by_name:
        raise ValueError(f"the output is {found}, but the kernel writes {by_name}: give the format that ran")
    return found


def _layout(row: Mapping, parts: Mapping, logged: Mapping) -> str | None:
    """Return torch's memory order from the kernel's name, or else from the row, or else from cuBLASLt's descriptors."""
    if parts.get("layout"):
        return LAYOUTS[str(parts["layout"]).lower()]
    if row.get("layout") is not None:
        if row["layout"] not in LAYOUTS:
            raise ValueError(
                f"layout is {row['layout']!r}, expected nn, nt, tn or tt: A and B by rows (n) or columns (t)"
            )
        return row["layout"]
    if "computeDesc.computeType" in logged:
        letters = ("t" if logged.get(f"computeDesc.trans{x}") == "OP_T" else "n" for x in "ab")
        return LAYOUTS["".join(letters)]
    return None


def _scaling(row: Mapping, logged: Mapping, nvjet: Mapping, formats: tuple[str, str]) -> tuple[str | None, bool]:
    """Return the kind of scaling, and whether FP8 accumulates slowly."""
    if get_format(formats[0]).bits != 8 or formats[0] == "s8":
        return None, False
    effects = nvjet.get("effects")
    mode = logged.get("computeDesc.aScaleMode", "")
    if effects is None:
        scales = "row" if "OUTER_VEC" in mode else "block" if "128" in mode else "tensor"
        fast = row.get("fast", "computeDesc.fastAccumulationFlag" in logged)
        return scales, not fast
    scales = "row" if "row" in effects else "block" if "block" in effects else "tensor"
    slow = "slow" in effects
    if row.get("fast") is not None and bool(row["fast"]) == slow:
        raise ValueError(
            f"the profile's fast (fast accumulation of FP8) is {row['fast']}, but by its name the kernel accumulates "
            f"{'slowly' if slow else 'fast'}: correct fast, or leave it out"
        )
    return scales, slow
