"""This module makes tables, vectors and one summary of a campaign's folder, for ``mpgemm report`` and for other machines."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mpgemm.campaign.folder import DEVICE, kept_arrays, read_json, shares, write_json
from mpgemm.campaign.jobs import JobOutcome
from mpgemm.campaign.parts import PARTS
from mpgemm.reporting.report import Table
from tensorcore_models.files import atomic_writer, write_text
from tensorcore_models.gpu.tiles import fastest_tiles
from tensorcore_models.hardware.campaign.recording import INDEX, Recorder, recorded
from tensorcore_models.hardware.campaign.run import COMPARISON

#: File that holds the counts of all parts.
SUMMARY = "campaign.json"
#: Names of the counts of compared elements; a row has one of them.
_COMPARED = ("dots", "elements", "inputs")
#: Parts whose arrays are separate vectors: (file of arrays, file of rows or None).
_VECTORS = {"functions": ("special_functions.npz", None), "libraries": ("products.npz", "products.json")}
#: Fields that tables leave out, because cells cannot hold them.
_LONG = ("kernels", "configuration", "rows", "shape", "seed", "shape_qkv", "sha256", "reproduced", "warps", "each")


def check(folder: Path) -> None:
    """Read all files of a folder.

    Raises
    ------
    ValueError
        If a file is damaged; the message names it.
    """
    for part in PARTS:
        list(shares(folder, part))
        if part in _VECTORS:
            kept_arrays(folder, part)
    for index in sorted(folder.glob(f"units/*/vectors/{INDEX}")):
        for _ in recorded(index.parent):
            pass


def counts(folder: Path) -> list[dict[str, Any]]:
    """Return, for each part with rows, the counts of rows, comparisons, differences, failures and tasks without time."""
    found = []
    for part in PARTS:
        held = list(shares(folder, part))
        rows = [row for group, _ in held for row in group]
        if not held:
            continue
        found.append({
            "part": part, "rows": len(rows), "failed": sum("failed" in row for row in rows),
            "left": sum(left for _, left in held),
            "compared": sum(next((int(row[x]) for x in _COMPARED if x in row), 0) for row in rows if "differ" in row),
            "differ": sum(int(row.get("differ", 0)) for row in rows),
        })  # fmt: skip
    return found


def summarise(folder: Path, outcomes: Sequence[JobOutcome] = (), seconds: float = 0.0) -> list[dict[str, Any]]:
    """Write the tables, the vectors and the summary of a folder, and return the counts of its parts."""
    folder = Path(folder)
    found = counts(folder)
    device = read_json(folder / DEVICE)
    for row in found:
        rows = [row for group, _ in shares(folder, row["part"]) for row in group]
        _write_table(folder, row["part"], rows)
        _write_vectors(folder, row["part"], rows, device)
    _write_units(folder / "units")
    timed = [row for group, _ in shares(folder, "times") for row in group]
    write_json(folder / SUMMARY, {
        "campaign": {"device": device, "parts": found, "seconds": round(seconds, 1)},
        "fastest_tiles": [
            {"unit": unit, "target": target, **tile._asdict()} for (unit, target), tile in fastest_tiles(timed).items()
        ],
        "ended_badly": [asdict(outcome) for outcome in outcomes if outcome.said],
    })  # fmt: skip
    return found


def _write_table(folder: Path, part: str, rows: Sequence[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row if name not in _LONG))
    if part == "libraries":
        names += ["kernel"]
        rows = [{**row, "kernel": _kernel(row)} for row in rows]
    table = Table(f"{part}: {PARTS[part].about}", names, [[_cell(row.get(name, "")) for name in names] for row in rows])
    write_text(folder / f"{part}.csv", table.to_csv())


def _kernel(row: dict[str, Any]) -> str:
    """Return the kernel that took longest."""
    timed = [kernel for kernel in row.get("kernels", ()) if len(kernel) == 2]
    return str(max(timed, key=lambda kernel: kernel[1])[0])[:80] if timed else ""


def _cell(value: Any) -> Any:
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else str(value)


def _write_vectors(folder: Path, part: str, rows: Sequence[dict[str, Any]], device: dict[str, Any]) -> None:
    if part not in _VECTORS or not (arrays := kept_arrays(folder, part)):
        return
    name, listed = _VECTORS[part]
    with atomic_writer(folder / part / name) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    if listed is not None:
        write_json(folder / part / listed, {**device, "rows": list(rows)})


def _write_units(folder: Path) -> None:
    """Write the vectors and comparisons of all shares to the folder "recorded", for tools/make_hopper_vectors.py."""
    indices = sorted(folder.glob(f"share-*/vectors/{INDEX}"))
    if not indices:
        return
    facts = read_json(indices[0])
    del facts["vectors"]
    recorder = Recorder(folder / "recorded", facts)
    compared: dict[str, Any] = {}
    for index in indices:
        for entry in recorded(index.parent):
            recorder.add(*entry)
        compared |= read_json(index.parent.parent / COMPARISON)["instructions"]
    recorder.save()
    write_json(folder / "recorded" / COMPARISON, compared)
