"""Edge rules that hardware has settled, as tables beside the catalogue.

The campaign (:mod:`tensorcore_models.hardware.campaign`) writes ``edge_rules.json``; put into the folder
``tensorcore_models/catalogue/measured/`` (any name ending in .json) it changes the defaults of that architecture's rows, and
the instructions that were run get the table's evidence. Without tables the rows stay as published. A table may list in
`compared` how many results of each instruction were compared with its row, of which none differs: those rows have its evidence,
too.

``hopper.json`` is the table of an H100; ``tools/make_hopper_vectors.py`` makes it of the run's recordings.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..accumulators import Accumulator
from ..engines.instruction import Instruction

Spec = TypeVar("Spec", bound=Accumulator)

FOLDER = Path(__file__).resolve().parent / "measured"


def load_tables(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Return the tables of a folder, by name; none if there is no folder. Raises ValueError if a file is not such a table."""
    tables = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        table = json.loads(path.read_text())
        missing = {"arch", "evidence", "rules", "instructions"} - set(table)
        if missing:
            raise ValueError(f"{path.name} is not a table of edge rules: {', '.join(sorted(missing))} missing")
        tables.append(table)
    return tables


def settled_rules(arch: str) -> frozenset[str]:
    """Return the edge rules that a table settles for an architecture."""
    return frozenset(rule for table in load_tables() if table["arch"] == arch for rule in table["rules"])


def is_shared(rule: str, row: Instruction) -> bool:
    """Return whether a rule measured on one instruction holds for others: floors depend on the result, and fp64 has its own
    NaN."""
    return rule != "exponent_floor" and not (rule == "nan" and row.d_format == "fp64")


def _applied(spec: Spec, rules: Mapping[str, Any]) -> Spec:
    values = {rule: tuple(v) if isinstance(v, list) else v for rule, v in rules.items() if rule in spec.edge_rules}
    return spec.with_rules(**values)


def with_table(row: Instruction, table: Mapping[str, Any] | None) -> Instruction:
    """Return an instruction with a table's edge rules: its own, or the architecture's.

    An instruction that the table's run decided, or compared, takes over its evidence.
    """
    spec = row.accumulator
    if table is None or spec is None or row.arch != table["arch"]:
        return row
    known = table["instructions"].get(row.name)
    general = {rule: value for rule, value in table["rules"].items() if is_shared(rule, row)}
    spec = _applied(spec, known["rules"] if known else general)
    parts = {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec)}
    inner: Any = {name: _applied(part, table["rules"]) for name, part in parts.items() if isinstance(part, Accumulator)}
    spec = dataclasses.replace(spec, **inner)  # an inner operation is the architecture's
    seen = (known and not known.get("unexplained")) or row.name in table.get("compared", {})
    evidence = table["evidence"] if seen else row.evidence
    return dataclasses.replace(row, accumulator=spec, evidence=evidence)
