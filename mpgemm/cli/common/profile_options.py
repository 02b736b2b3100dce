"""Adds the options that name a profile, and makes recipes from the recorded rows that they select."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tensorcore_models.libraries import ProfiledProduct, Recipe
    from tensorcore_models.libraries.recorded import Problem

#: The command that writes a profile.
RECORD = "`python -m mpgemm.traces.record_products --out products.jsonl` where the GPU is"
#: Options that need a profile.
BESIDE = ("--rows", "--assume")


def add_profile_arguments(parser: Any, nargs: int | None = None) -> None:
    """Add --profile (with `nargs` --profiles, one file for each GPU), --rows and --assume."""
    name = "--profile" if nargs is None else "--profiles"
    parser.add_argument(name, metavar="FILE", nargs=nargs,
                        help=f"JSON file{' of each GPU' if nargs else ''} with products and the kernels that "
                        f"computed them, recorded with torch's profiler and cuBLASLt's log by {RECORD}; it "
                        "takes the place of --library")  # fmt: skip
    parser.add_argument(
        "--rows",
        metavar="PATTERN",
        help="use only rows of the profile whose name or layout matches PATTERN, such as '*/nt' (default: all rows)",
    )
    parser.add_argument(
        "--assume",
        metavar="GPU",
        help="predict by what is known of the libraries on this GPU (h100), although "
        "the profile is of another GPU or version",
    )


def profiled(
    path: str,
    gpu: str,
    sizes: tuple[int, int, int],
    args: argparse.Namespace,
    formats: Sequence[str | None] = (None, None),
    stored: np.dtype | None = None,
) -> list[tuple[dict, ProfiledProduct]]:
    """Return the rows of a profile that have the size (m, k, n), with their recipes; rows of equal recipes appear once.

    `formats` are the wanted formats of operands and result, None for any; `stored` is the type of A's array.

    Raises ValueError if no row fits, Unknown if a row that fits was not recorded on the GPU.
    """
    from tensorcore_models.libraries import from_profile
    from tensorcore_models.libraries.recorded_products import FAILURES, load_rows

    m, k, n = sizes
    rows = [row for row in load_rows(path) if not set(FAILURES) & set(row)]
    fits = [row for row in rows if (row.get("m"), row.get("k"), row.get("n")) == (m, k, n) and _named(row, args.rows)]
    if not fits:
        seen = sorted({f"{row['m']} x {row['k']} x {row['n']}" for row in rows if {"m", "k", "n"} <= set(row)})
        named = f" named like {args.rows!r}" if args.rows else ""
        other = ", or another --rows" if args.rows else ""
        raise ValueError(
            f"{path} has no row of m {m}, k {k}, n {n}{named}: its rows have the sizes (m x k x n) "
            f"{', '.join(seen[:8]) or 'none'}; give matrices of one of them{other}"
        )
    found: list[tuple[dict, ProfiledProduct]] = []
    for row in fits:
        product = from_profile(row, gpu, assume=args.assume)
        asked = zip(formats, (product.profile.formats[0], product.out_format), strict=True)
        fitting = all(want in (None, has) for want, has in asked) and _holds(product, stored)
        if fitting and not any(_same(product, other) for _, other in found):
            found.append((row, product))
    if not found:
        held = "" if stored is None else f" for an A of {stored}"
        raise ValueError(
            f"{path} has rows of this size, but none with operands of {formats[0] or 'any format'} and a result "
            f"of {formats[1] or 'any format'}{held}: name formats that it has with --operands and --out-format"
        )
    return found


def one_profiled(*args: Any, **options: Any) -> tuple[dict, ProfiledProduct]:
    """Return the one row that :func:`profiled` finds. Raises ValueError if it finds several."""
    found = profiled(*args, **options)
    if len(found) > 1:
        names = ", ".join(_name(row) for row, _ in found[:6])
        raise ValueError(
            f"{args[0]} has {len(found)} rows with different recipes that fit these matrices, expected one: "
            f"{names}. Choose a row with --rows or --operands"
        )
    return found[0]


@dataclass(frozen=True)
class ProfiledRecording:
    """`ProfiledRecording` holds the rows of a profile as `mpgemm invariance` takes recordings: one product for each problem."""

    device: str
    version: str
    path: str
    rows: dict[Problem, dict]
    assume: str | None

    @classmethod
    def of(cls, path: str, gpu: str, args: argparse.Namespace) -> ProfiledRecording:
        """Return the products of a file that --rows selects. Raises ValueError if two of one problem have different recipes."""
        from tensorcore_models.libraries import from_profile
        from tensorcore_models.libraries.recorded import Problem
        from tensorcore_models.libraries.recorded_products import FAILURES, load_rows

        found: dict[Problem, dict] = {}
        version = ""
        for row in load_rows(path):
            if set(FAILURES) & set(row) or not {"m", "n", "k"} <= set(row) or not _named(row, args.rows):
                continue
            product = from_profile(row, gpu, assume=args.assume)
            version = version or str(row.get("cublas") or row.get("cuda") or "")
            problem = Problem(product.profile.formats[0], product.out_format, row["k"], row["n"], row["m"])
            other = found.setdefault(problem, row)
            if other is not row and not _same(product, from_profile(other, gpu, assume=args.assume)):
                names = f"{_name(other)} and {_name(row)}"
                raise ValueError(
                    f"{path}: the product of {problem} was recorded with two recipes, {names}, expected one: "
                    "choose its row with --rows"
                )
        return cls(gpu, version, path, found, args.assume)

    def problems(self) -> list[Problem]:
        """Return the recorded problems, sorted by format, k, n and m."""
        return sorted(self.rows)

    def recipe(self, problem: Problem) -> Recipe:
        """Return the recipe of a recorded problem."""
        from tensorcore_models.libraries import from_profile

        return from_profile(self.rows[problem], self.device, assume=self.assume).recipe


def bits_of(product: ProfiledProduct, a: np.ndarray, b: np.ndarray, scales: dict[str, Any], scale: float) -> np.ndarray:
    """Return the encodings of a product's result; a `scale` other than 1 is the product of both operands' scales."""
    from tensorcore_models.formats import get_format

    if scale != 1:
        scales = {"scale_a": scale, "scale_b": 1.0}
    return product.product(a, b, **scales).view(get_format(product.out_format).container)


def _holds(product: ProfiledProduct, stored: np.dtype | None) -> bool:
    """Return whether an array of type `stored` may hold A of a product, as values or as encodings."""
    from tensorcore_models.formats import get_format
    from tensorcore_models.formats.interop import format_of_dtype

    if stored is None:
        return True
    fmt = get_format(product.recipe.operand_formats[0])
    return stored == fmt.container if stored.kind == "u" else format_of_dtype(stored) == fmt or stored.name == "int8"


def _same(x: ProfiledProduct, y: ProfiledProduct) -> bool:
    """Return whether two products have equal recipes, scales and result formats."""
    facts = [(z.order, z.recipe.engine, z.recipe.epilogue, z.out_format, z.profile.scales) for z in (x, y)]
    return facts[0] == facts[1]


def _name(row: dict) -> str:
    parts = (row.get("name"), row.get("op"), row.get("operands"), row.get("layout"), row.get("dtype"))
    return str(row.get("name") or " ".join(str(part) for part in parts if part))


def _named(row: dict, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(_name(row), pattern) or row.get("layout") == pattern
