"""Applies tables of edge rules that hardware has settled to the rows of the catalogue.

The campaign (:mod:`tensorcore_models.hardware.campaign`) writes ``edge_rules.json``. In the folder
``tensorcore_models/catalogue/measured/``, under any name ending in .json, this table changes the defaults of its architecture's
rows, and the instructions that were run get its evidence. Without tables the rows stay as published. A table may list in
`compared` the instructions whose results were compared with their rows, with the number of results, none of which differs.
These rows get its evidence, too.

``hopper.json`` is the table of an H100; ``tools/make_hopper_vectors.py`` makes it from the recordings of the run.
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
    """Return the tables of a folder in the order of their names; raises ValueError if a file is not such a table."""
    tables = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        table = json.loads(path.read_text())
        missing = {"arch", "evidence", "rules", "instructions"} - set(table)
        if missing:
            raise ValueError(
                f"{path.name} is not a table of edge rules, because it lacks {', '.join(sorted(missing))}: use edge_rules.json "
                "of a campaign, or remove the file"
            )
        tables.append(table)
    return tables


def settled_rules(arch: str) -> frozenset[str]:
    """Return the edge rules that a table settles for an architecture."""
    return frozenset(rule for table in load_tables() if table["arch"] == arch for rule in table["rules"])


def is_shared(rule: str, row: Instruction) -> bool:
    """Return whether a rule measured on one instruction holds for others.

    Alignment floors depend on the result format, and fp64 instructions have their own rule for NaN.
    """
    return rule != "exponent_floor" and not (rule == "nan" and row.d_format == "fp64")


def _applied(spec: Spec, rules: Mapping[str, Any]) -> Spec:
    values = {rule: tuple(v) if isinstance(v, list) else v for rule, v in rules.items() if rule in spec.edge_rules}
    return spec.with_rules(**values)


def with_table(row: Instruction, table: Mapping[str, Any] | None) -> Instruction:
    """Return an instruction with the edge rules of a table: those of the instruction, or else those of the architecture.

    An instruction gets the evidence of the table if the run decided its rules or compared its results.
    """
    spec = row.accumulator
    if table is None or spec is None or row.arch != table["arch"]:
        return row
    known = table["instructions"].get(row.name)
    general = {rule: value for rule, value in table["rules"].items() if is_shared(rule, row)}
    spec = _applied(spec, known["rules"] if known else general)
    parts = {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec)}
    inner: Any = {name: _applied(part, table["rules"]) for name, part in parts.items() if isinstance(part, Accumulator)}
    spec = dataclasses.replace(spec, **inner)  # an inner operation has the architecture's rules
    seen = (known and not known.get("unexplained")) or row.name in table.get("compared", {})
    evidence = table["evidence"] if seen else row.evidence
    return dataclasses.replace(row, accumulator=spec, evidence=evidence)
