"""Writes the page of the matrix units: ``python docs/_ext/units_page.py > docs/units.md``."""

from tensorcore_models.catalogue import architectures, list_instructions
from tensorcore_models.catalogue.vendors import unit_of
from tensorcore_models.engines.instruction import EVIDENCE

HEADER = """# Matrix units and the evidence for their rows

<!-- Generated from the catalogue by `python docs/_ext/units_page.py > docs/units.md`; do not edit. -->

Each line is an architecture whose name `mpgemm models ARCH` takes. The last column counts its rows by their evidence.
[Instructions](instructions.md) lists every row with its source. [Hardware](hardware.md) describes the runs on hardware and the
units without rows.

| vendor | unit | architecture | since | operands | rows | evidence of the rows |
|---|---|---|---|---|---|---|
"""


def line(arch: str) -> str:
    """Return the line of one architecture."""
    unit, rows = unit_of(arch), list_instructions(arch)
    operands = ", ".join(dict.fromkeys(row.a_format for row in rows))
    levels = [
        row.evidence.partition(" (")[0] if row.evidence.startswith(f"{EVIDENCE[0]} (") else row.evidence for row in rows
    ]
    known = ", ".join(f"{level}: {levels.count(level)}" for level in EVIDENCE if level in levels)
    return f"| {unit.vendor} | {unit.name} | `{arch}` | {unit.since} | {operands} | {len(rows)} | {known} |"


def page() -> str:
    """Return the whole page as Markdown."""
    return HEADER + "\n".join(line(arch) for arch in architectures()) + "\n"


if __name__ == "__main__":
    print(page(), end="")
