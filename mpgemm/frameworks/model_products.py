"""Pairs a model's products with the kernels that computed them on a GPU, and makes recipes from the pairs.

Products come in the order in which torch dispatched them, kernels in the order in which they ran. The next product was computed
by the next kernel that multiplies, and by the kernel that joins its slices.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from mpgemm.frameworks.multiplier import Product
from tensorcore_models import libraries
from tensorcore_models.files import write_text
from tensorcore_models.libraries.profile_tables import FAMILIES, REDUCTION
from tensorcore_models.libraries.recorded_products import load_rows


def product_rows(products: Sequence[Mapping], kernels: Iterable[str]) -> list[dict]:
    """Return rows of products with their kernels, for :func:`tensorcore_models.libraries.from_profile`.

    Parameters
    ----------
    products : sequence of mapping
        Products with m, n, k, operands, dtype and layout, as :mod:`tensorcore_models.libraries.profiles` defines them.
    kernels : iterable of str
        Names of all kernels of the run, in order; kernels that form no product are skipped.

    Raises
    ------
    ValueError
        If the numbers of products and of kernels that multiply differ.
    """
    groups: list[list[str]] = []
    for name in kernels:
        if REDUCTION.search(name) and groups:
            groups[-1].append(name)
        elif any(family.match(name) for family in FAMILIES):
            groups.append([name])
    if len(groups) != len(products):
        raise ValueError(
            f"got {len(products)} products and {len(groups)} kernels with names of known matrix kernels, expected equal "
            "numbers: record a run of the model alone, after a warm-up run"
        )
    return [{**product, "kernels": names} for product, names in zip(products, groups, strict=True)]


def write_rows(rows: Sequence[Mapping], path: str | Path, **shared: str) -> None:
    """Write rows as JSON; `shared` holds fields of all rows: gpu, torch, cuda."""
    write_text(path, json.dumps({**shared, "rows": list(rows)}, indent=1) + "\n")


def profiled_products(
    rows: str | Path | Sequence[Mapping], gpu: str = "h100", *, assume: str | None = None
) -> Callable[[Product], libraries.Recipe | None]:
    """Return the function from recorded products to recipes that `recipe=` of :func:`mpgemm.torch.emulate` takes.

    Parameters
    ----------
    rows : path or sequence of mapping
        File that :func:`mpgemm.torch.record_kernels` wrote, or rows for :func:`tensorcore_models.libraries.from_profile`.
    gpu, assume : str
        See :func:`tensorcore_models.libraries.from_profile`.

    Returns
    -------
    callable
        Function from a :class:`mpgemm.torch.Product` to its recipe, or to None (one chain) for a product that was not recorded.

    Raises
    ------
    Unknown
        If a kernel is not known.
    ValueError
        If products of equal sizes and formats ran in two orders of k, because their layouts differ and a product here has no
        layout.
    """
    given = load_rows(rows) if isinstance(rows, str | Path) else rows
    recipes: dict[tuple, libraries.Recipe] = {}
    for row in given:
        found = libraries.from_profile(row, gpu, assume=assume)
        a, b = found.recipe.operand_formats
        key = (a, b, found.out_format, row["m"], row["n"], row["k"])
        other = recipes.setdefault(key, found.recipe)
        if (other.engine.label, other.order) != (found.recipe.engine.label, found.recipe.order):
            raise ValueError(
                f"{a} x {b} of {row['m']} x {row['k']} x {row['n']} ran as {other.name} and as {found.recipe.name}, expected "
                "one order of k: keep one of these rows"
            )
    return lambda p: recipes.get((p.a_format, p.b_format, p.out_format, p.m, p.n, p.k))
