"""Which kernels a model's products ran as on a GPU, and the recipes that follow: rows for `libraries.from_profile`.

Products in the order in which torch dispatched them and kernels in the order in which they ran are one list each; the next
kernel that multiplies, with the one that joins its slices, is the next product's.
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
    """Return rows of products with the kernels that computed them.

    Parameters
    ----------
    products : sequence of mapping
        m, n, k, operands, dtype and layout, as :mod:`tensorcore_models.libraries.profiles` has them.
    kernels : iterable of str
        Names of all kernels of the run, in order; those that form no product are passed over.

    Raises
    ------
    ValueError
        If there are more or fewer kernels that multiply than products.
    """
    groups: list[list[str]] = []
    for name in kernels:
        if REDUCTION.search(name) and groups:
            groups[-1].append(name)
        elif any(family.match(name) for family in FAMILIES):
            groups.append([name])
    if len(groups) != len(products):
        raise ValueError(
            f"{len(products)} products, but {len(groups)} kernels that multiply (kernels of an unknown kind are not "
            f"counted): record a run of the model alone, after a warm-up run"
        )
    return [{**product, "kernels": names} for product, names in zip(products, groups, strict=True)]


def write_rows(rows: Sequence[Mapping], path: str | Path, **shared: str) -> None:
    """Write rows as JSON; shared: gpu, torch, cuda, which hold for all."""
    write_text(path, json.dumps({**shared, "rows": list(rows)}, indent=1) + "\n")


def profiled_products(
    rows: str | Path | Sequence[Mapping], gpu: str = "h100", *, assume: str | None = None
) -> Callable[[Product], libraries.Recipe | None]:
    """Return the recipes of recorded products, as `recipe=` of :func:`mpgemm.torch.emulate` takes them.

    Parameters
    ----------
    rows : path or sequence of mapping
        What :func:`mpgemm.torch.record_kernels` wrote, or rows for :func:`tensorcore_models.libraries.from_profile`.
    gpu, assume : str
        See :func:`tensorcore_models.libraries.from_profile`.

    Returns
    -------
    callable
        From a :class:`mpgemm.torch.Product` to its recipe; None for a product that was not recorded, which is one chain.

    Raises
    ------
    Unknown
        For kernels that are not known.
    ValueError
        If one product ran in two orders of k: their layouts differ, which a product here does not tell.
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
                f"{a} x {b} of {row['m']} x {row['k']} x {row['n']} ran as {other.name} and as {found.recipe.name}, with other "
                "orders of k: keep one of these rows"
            )
    return lambda p: recipes.get((p.a_format, p.b_format, p.out_format, p.m, p.n, p.k))
