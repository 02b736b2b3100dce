"""This module derives the order of k of a kernel from its profile."""

from collections.abc import Iterable, Sequence

from ..accumulators import SequentialFMA
from ..catalogue import get_instruction
from ..catalogue.nvidia import ptx_name
from ..engines.engine import Engine
from ..engines.matrix_engine import MatrixEngine
from ..formats import get_format
from ..orders.order import Chain, Order
from . import profile_tables as tables
from .cublaslt import nvjet_slices, slice_length, vector_order
from .cublaslt_tables import PLATFORMS, Gemv, Platform
from .profiles import ProductProfile, unknown
from .recipe import contiguous, joined, residue_first, restarted
from .scaled_mm import pairwise


def unit_of(profile: ProductProfile, device: str) -> Engine:
    """Return the unit that the kernel multiplies with."""
    a, b = profile.formats
    unit = profile.family.units[a]
    if unit == "fma":
        wide = "fp64" if a == "fp64" else "fp32"
        return MatrixEngine(SequentialFMA(), a_format=a, c_format=wide, d_format=wide)
    return get_instruction(device, unit.format(step=_step(profile), a=ptx_name(a), b=ptx_name(b)))


def _step(profile: ProductProfile) -> int:
    """Return the k of the MMA from the kernel's name, or a default where the name lacks it."""
    spelled = profile.parts.get("step")
    if spelled is not None:
        return tables.STEPS.get(spelled) or int(spelled)
    if profile.family.name == "cutlass tensorop" and profile.parts.get("tile"):
        return 16
    return {"fp64": 4}.get(profile.formats[0], 8)


def order_of_profile(profile: ProductProfile, device: str) -> Order:
    """Return the order of k of a profile's kernel: its slices, the order within a slice, and the joining of slices.

    Raises
    ------
    Unknown
        If the number, the lengths or the joining of the slices do not follow from the profile.
    """
    cut = profile.family.cut
    slices = _slices_asked(profile)
    if cut == "lanes":
        return vector_order(_lanes(profile, device), profile.k, slices)
    tile = _tile(profile)
    if slices == 1:
        return _one_slice(profile, range(profile.k), tile)
    if cut == "turns":
        tiles = contiguous(0, profile.k, tile)
        return _joined(profile, [Chain(tuple(tiles[s::slices])) for s in range(slices)])
    if cut == "tiles":
        parts: Iterable[range] = nvjet_slices(_platform(device), profile.k, slices, tile)
    else:
        parts = contiguous(0, profile.k, slice_length(profile.k, slices, _grain(profile)))
    partials, carry = _merge(profile)
    return joined((_one_slice(profile, part, tile) for part in parts), partials=partials, carry=carry)


def _platform(device: str) -> Platform:
    measured = tables.MEASURED[device]
    return PLATFORMS[measured.target, measured.versions[-1]]


def _slices_asked(profile: ProductProfile) -> int:
    """Return numSplitsK after checking it against the kernels' names."""
    asked, joins = profile.number("numSplitsK"), profile.partials is not None or bool(profile.parts.get("split"))
    if joins and (asked is None or asked < 2):
        raise unknown(
            f"{profile.kernel[:80]} splits k, but numSplitsK is {asked}, so the number of slices is not known", "numSplitsK",
            ("the value that cuBLASLt logs",),
        )  # fmt: skip
    if asked is not None and asked < 1:
        raise ValueError(f"the configuration's numSplitsK is {asked}, expected at least 1")
    if (asked or 1) > 1 and profile.family.cut is None:
        raise unknown(f"numSplitsK {asked} of {profile.family.name} kernels is not known", "numSplitsK", (1,))
    return asked or 1


def _tile(profile: ProductProfile) -> int:
    spelled = profile.parts.get("tile")
    if spelled is not None:
        return int(spelled)
    if profile.family.name in ("cutlass tensorop", "integer"):
        return tables.NO_STAGES_TILE
    raise unknown(f"{profile.kernel}: the values of k in a tile are not known", "stages", ("16x6, 64xAUTO, ...",))


def _one_slice(profile: ProductProfile, part: range, tile: int) -> Order:
    """Return the order of one slice of k: a chain with the family's residue, or chains added outside at intervals."""
    if profile.slow:
        return restarted(part.start, part.stop, tables.SLOW_INTERVAL, begin="zero")
    return residue_first(part.start, part.stop, tile) if profile.family.residue == "first" else Chain((part,))


def _grain(profile: ProductProfile) -> int:
    """Return the grain of slices: 128 bytes if they divide k and an operand has k contiguous, else 16 bytes."""
    if profile.layout is None:
        raise unknown(
            f"{profile.kernel} splits k by the layout of its operands, which is not known", "layout", ("nn", "nt", "tn")
        )
    size = get_format(profile.formats[0]).container.itemsize
    line = 128 // size
    return line if profile.layout != "tn" and profile.k % line == 0 else 16 // size


def _merge(profile: ProductProfile) -> tuple[str | None, str | None]:
    """Return the formats of partial sums and of the running sum, for slices that are contiguous ranges of k."""
    if profile.partials is not None:
        wide = "fp64" if profile.formats[0] == "fp64" else "fp32"
        return (None if profile.partials == wide else profile.partials), None
    scheme = profile.fields.get("reductionScheme", "NONE")
    if scheme not in tables.MERGES:
        raise unknown(f"reductionScheme {scheme} is not known", "reductionScheme", tables.MERGES)
    return tables.MERGES[scheme]


def _joined(profile: ProductProfile, dealt: Sequence[Order]) -> Order:
    """Return the sum of interleaved slices: in their order, or pairwise if customOption or cleared memory says so."""
    if profile.family.join == "forward":
        return joined(dealt)
    if profile.cleared:
        return pairwise(list(dealt))
    option = profile.number("customOption")
    if option not in tables.PAIRWISE:
        what = f"customOption {option} with {len(dealt)} slices of {profile.family.name} kernels is not known"
        raise unknown(what, "customOption", tables.PAIRWISE)
    return pairwise(list(dealt))


def _lanes(profile: ProductProfile, device: str) -> Gemv:
    """Return the lanes of a matrix-vector kernel from its template arguments, or else from customOption."""
    if 1 not in (profile.m, profile.n):
        raise unknown(
            f"{profile.kernel[:80]} with m {profile.m} and n {profile.n} is not known: it multiplies a matrix by a vector",
            "kernels",
        )
    option, options = profile.number("customOption"), tables.MORE_OPTIONS | _platform(device).gemv
    named, row = tables.LANES.get(profile.parts.get("template") or ""), options.get(-1 if option is None else option)
    if named is not None and row not in (None, named):
        raise unknown(
            f"customOption {option} and the name {profile.kernel[:160]!r} mean different orders of lanes",
            "customOption",
        )
    row = named or row
    if row is None:
        raise unknown(f"customOption {option} of a matrix-vector kernel is not known", "customOption", sorted(options))
    wide = max(1, get_format(profile.formats[0]).container.itemsize // 4)
    return Gemv(row.width // wide, row.lanes, row.chunk, row.butterfly) if row.width < 0 else row
