"""This module predicts the result of a product from its profile with :func:`from_profile`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..catalogue import canonical_device
from ..engines.scaling import RULES, Scaling, read_scales
from ..formats import Format, get_format
from ..formats.operands import check_bits, operand_bits, values_of_bits
from ..machine.fp_state import default_fp_state
from ..orders.order import Order
from . import profile_tables as tables
from .cublaslt import cublaslt
from .cublaslt_tables import FIELDS
from .profile_orders import order_of_profile, unit_of
from .profiles import LOGGED, MORE_LOGGED, ProductProfile, read_profile, unknown
from .recipe import Epilogue, Recipe, Unknown, finish, folded_scale
from .scaled_mm import EPILOGUE as SCALED_EPILOGUE

#: Scale rules of A and B by the kind of scaling of a kernel.
_SCALES = {
    "tensor": ("per tensor", "per tensor"), "row": ("per row and column", "per row and column"),
    "block": ("blocks of 1 x 128", "blocks of 128 x 128"),
}  # fmt: skip
_SCALE_WORDS = {
    None: "none", "tensor": "RN32(scale_a scale_b), folded into one factor of the sum",
    "row": "(sum scale_b) scale_a, each product rounded",
    "block": "after each 128 products, total = RN32(RN32(scale_a scale_b) chain + total)",
}  # fmt: skip
#: Formats whose results are returned as numbers; results in other formats are encodings.
_NUMBERS = {"fp32": np.float32, "fp64": np.float64, "s32": np.int32}


@dataclass(frozen=True)
class ProfiledProduct:
    """`ProfiledProduct` predicts the result of a product on the GPU where its profile was recorded.

    Attributes
    ----------
    recipe : Recipe
        Unit, order of k and conversion to the output.
    profile : ProductProfile
        Facts of the profile.
    assumed : str
        Assumptions of the prediction; empty if the rules were recorded on this GPU with this version.
    """

    recipe: Recipe
    profile: ProductProfile
    assumed: str = ""

    @property
    def order(self) -> Order:
        """Return the order of k, which consists of chains and the sums that join them."""
        return self.recipe.order

    @property
    def out_format(self) -> str:
        """Return the format of the result."""
        return self.profile.out_format

    @property
    def scale_words(self) -> str:
        """Return text that says how the kernel applies scale factors."""
        return _SCALE_WORDS[self.profile.scales]

    def bits(self, x: np.ndarray, side: str) -> np.ndarray:
        """Return operand "a" or "b" as the encodings that the recipe multiplies.

        Parameters
        ----------
        x : ndarray
            Operand. Unsigned integers are encodings (for TF32 those of FP32); other types are values that the operand's format
            can represent.
        side : {"a", "b"}
            Side of the operand.
        """
        fmt = get_format(self.recipe.operand_formats["ab".index(side)])
        x = np.asarray(x)
        return check_bits(x, fmt, side, 2) if x.dtype.kind == "u" else operand_bits(x, fmt, None, side)

    @default_fp_state
    def product(self, a, b, scale_a=None, scale_b=None, c=None) -> np.ndarray:
        """Return the predicted result of the GPU for A B.

        Parameters
        ----------
        a, b : ndarray, shapes (m, k) and (k, n)
            Encodings as unsigned integers, or values in the operands' format (float32 for TF32). A may have only some of the
            rows and B only some of the columns, because an element depends only on its own row and column.
        scale_a, scale_b : array_like, optional
            Factors for a kernel that scales: two numbers, arrays (m, 1) and (1, n), or arrays (m, k/128) and (k/128, n/128).
        c : ndarray, shape (m, n), optional
            Addend, as encodings of the output format or values that it can represent. It is added in the accumulator's format
            before the output is rounded, as for beta = 1 (inferred: no such product was recorded).

        Returns
        -------
        ndarray, shape (m, n)
            Results as float32, float64 or int32 if the output has this format, else encodings as unsigned integers.

        Raises
        ------
        Unknown
            If scales are given to a kernel without scales, or `c` together with scales.
        TypeError, ValueError
            If types or shapes are wrong, or the operands' format cannot represent a value.
        """
        a, b = self.bits(a, "a"), self.bits(b, "b")
        if a.shape[1] != self.recipe.k or b.shape[0] != self.recipe.k:
            raise ValueError(f"A is {a.shape} and B is {b.shape}, expected k = {self.recipe.k} as in the profile")
        scaling = self._scaling(a, b, scale_a, scale_b)
        fmt = get_format(self.out_format)
        if c is not None:
            bits = self._added(a, b, c, scaling)
        elif scaling is None or scaling.folded:
            scale = 1.0 if scaling is None else folded_scale(scaling.a.item(), scaling.b.item())
            bits = self.recipe.gemm_bits(a, b, out_format=self.out_format, scale=scale)
        else:
            bits = self.recipe.scaled_bits(a, b, scaling, out_format=self.out_format)
        return bits.view(_NUMBERS[fmt.name]) if fmt.name in _NUMBERS else bits

    def _scaling(self, a, b, scale_a, scale_b) -> Scaling | None:
        kind = self.profile.scales
        if scale_a is None and scale_b is None:
            if kind in (None, "tensor"):
                return None
            raise ValueError(
                f"the kernel applies scale factors ({_SCALE_WORDS[kind]}), got none: give scale_a and scale_b"
            )
        if kind is None:
            raise Unknown(
                f"{self.recipe.name} takes no scales", field="scale_a", advice="Leave out scale_a and scale_b"
            )
        rule_a, rule_b = (next(rule for rule in RULES if rule.name == name) for name in _SCALES[kind])
        return read_scales(scale_a, scale_b, a.shape[0], a.shape[1], b.shape[1], rules=(rule_a, rule_b))

    def _added(self, a, b, c, scaling) -> np.ndarray:
        """Return the sum plus C in the accumulator's format, rounded to the output."""
        wide, fmt = self.recipe.engine.formats[3], get_format(self.out_format)
        if scaling is not None or not isinstance(wide, Format) or not isinstance(fmt, Format):
            raise unknown("an addend with scales, or of integer products, was not recorded", "c", (None,))
        c = np.asarray(c)
        c = check_bits(c, fmt, "c", 2) if c.dtype.kind == "u" else operand_bits(c, fmt, None, "c")
        sums = values_of_bits(self.recipe.sum_bits(a, b, out_format=fmt.name), wide)
        with np.errstate(all="ignore"):
            total = sums + values_of_bits(c, fmt).astype(sums.dtype)
        bits = np.ascontiguousarray(total).view(wide.container)
        return bits if wide == fmt else finish(bits, wide, self.recipe.epilogue, fmt, 1.0)

    def __str__(self) -> str:
        lines = [self.recipe.picture()]
        lines.append(f"  output in {self.out_format}; scales: {_SCALE_WORDS[self.profile.scales]}")
        if self.assumed:
            lines.append(f"  assumed: {self.assumed}")
        return "\n".join(lines)


def from_profile(row: Mapping, gpu: str = "h100", *, assume: str | None = None) -> ProfiledProduct:
    """Return a product's prediction from its profile: kernels, cuBLASLt's configuration, sizes and formats.

    Parameters
    ----------
    row : mapping
        Profile with the fields of :mod:`tensorcore_models.libraries.profiles`, as in rows that `python -m
        mpgemm.traces.record_products` writes.
    gpu : str
        Device on which the product ran.
    assume : str, optional
        Device whose rules are applied to a profile of another GPU or version; the result states this assumption.

    Raises
    ------
    Unknown
        If the GPU, version, kernel, number of slices or their joining was not recorded; the message names the field, its known
        values and what to do.
    TypeError, ValueError
        If fields are missing, have a wrong type or contradict each other.
    """
    device, assumed = _rules_of(row, gpu, assume)
    profile = read_profile(row)
    unit = unit_of(profile, device)
    if unit.formats[3].name == "s32" and profile.k << 14 >= 1 << 31:
        raise unknown(
            f"k {profile.k} of int8 can overflow int32, which was not recorded", "k", (f"up to {(1 << 17) - 1}",)
        )
    outputs = (unit.formats[3].name,) if unit.formats[3].name in ("fp64", "s32") else ("fp32", "fp16", "bf16")
    epilogue = SCALED_EPILOGUE if profile.scales == "tensor" else Epilogue(formats=outputs, scales=False)
    name = f"{profile.family.name} on {device} ({profile.kernel[:100]})"
    recipe = Recipe(
        unit, profile.k, order_of_profile(profile, device), epilogue, name, f"rules {tables.MEASURED[device].evidence}",
        rounding=profile.family.rounding,
    )  # fmt: skip
    if profile.out_format not in epilogue.formats:
        raise unknown(
            f"the output {profile.out_format} of {profile.family.name} kernels is not known", "dtype", epilogue.formats
        )
    return ProfiledProduct(recipe, profile, assumed)


def _rules_of(row: Mapping, gpu: str, assume: str | None) -> tuple[str, str]:
    """Return the device whose rules are applied, and the assumption that this makes."""
    if assume is not None and assume not in tables.MEASURED:
        raise Unknown(f"assume is {assume!r}, whose libraries are not known", field="assume", known=tables.MEASURED)
    gpu = canonical_device(gpu)
    measured = tables.MEASURED.get(gpu)
    other: list[tuple[str, str, Iterable[str]]] = []
    if measured is None:
        other.append(("gpu", f"gpu {gpu!r}", tables.MEASURED))
    else:
        ran = str(row.get("gpu") or measured.named)
        if measured.named.lower() not in ran.lower():
            other.append(("gpu", f"a profile of {ran!r}", (measured.named,)))
        version = row.get("cublas") or row.get("cuda")
        if version is not None and ".".join(str(version).split(".")[:2]) not in measured.versions:
            other.append(("cublas", f"cuBLAS {version}", measured.versions))
    if not other:
        return gpu, ""
    if assume is None:
        what = " and ".join(text for _, text, _ in other)
        raise Unknown(
            f"results of the libraries for {what} were not recorded", field=other[0][0], known=other[0][2],
            advice=f"Predict by the rules of another GPU with assume={next(iter(tables.MEASURED))!r}",
        )  # fmt: skip
    evidence = tables.MEASURED[assume].evidence
    return assume, f"{' and '.join(text for _, text, _ in other)} follows the rules {evidence}"


def configured(
    device: str,
    version: str,
    *,
    m: int,
    k: int,
    n: int,
    format: str,
    out_format: str,
    config: Mapping[str, Any],
) -> Recipe:
    """Return the recipe of a product for which cuBLASLt chose a given configuration.

    On a GPU and version whose products were recorded, the rules of :func:`from_profile` give the recipe, else
    :func:`cublaslt`.

    Parameters
    ----------
    device, version : str
        GPU and version of cuBLASLt. "h100" with "13.0" follows the rules of :func:`from_profile`, which cover more formats.
    m, k, n : int
        Sizes: A is (m, k), B is (k, n).
    format, out_format : str
        Formats of the operands and of the result.
    config : mapping
        Fields of cuBLASLt's configuration. With the rules of :func:`from_profile`, the names in cuBLASLt's log are also
        accepted (algoId, stages, numSplitsK, ...), and so are `layout` (torch's memory order of A and B: nn, nt, tn) and
        `fast_accumulation` (for FP8).

    Raises
    ------
    Unknown
        If the case was neither recorded nor measured.
    TypeError, ValueError
        If cuBLASLt does not have a field, or a value is not a number although it must be one.
    """
    measured = tables.MEASURED.get(device)
    if measured is None or ".".join(version.split(".")[:2]) not in measured.versions:
        fields = {name: value if value is None else _number(name, value) for name, value in config.items()}
        return cublaslt(device, version, m=m, k=k, n=n, format=format, config=fields)
    given = dict(config)
    beside = {"layout": given.pop("layout", None)}
    if "fast_accumulation" in given:
        beside["fast"] = str(given.pop("fast_accumulation")).lower() in ("true", "1")
    names = {*FIELDS, *LOGGED, *MORE_LOGGED}
    for name in given:
        if name not in names:
            raise ValueError(
                f"config has the field {name!r}, expected fields of {', '.join(sorted(names))}, layout, fast_accumulation"
            )
    sizes = {"m": m, "n": n, "k": k, "operands": format, "dtype": out_format, "configuration": given}
    return from_profile({**sizes, **beside, "cublas": version}, device).recipe


def _number(name: str, value) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"config field {name} is {value!r}, expected an integer") from None
