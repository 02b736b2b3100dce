"""Writes the page of the matrix units: ``python docs/_ext/units_page.py > docs/units.md``."""

from tensorcore_models.catalogue import architectures, list_instructions
from tensorcore_models.catalogue.vendors import unit_of
from tensorcore_models.engines.instruction import EVIDENCE

HEADER = """# Which units, since when, known how

<!-- Generated from the catalogue by `python docs/_ext/units_page.py > docs/units.md`; do not edit. -->

Each line is an architecture of
`mpgemm models ARCH`; [instructions.md](instructions.md) has every row with its source, [hardware.md](hardware.md) what
has been run and which units have no rows.

| vendor | unit | architecture | since | operands | rows | known how |
|---|---|---|---|---|---|---|
"""


def line(arch: str) -> str:
    """One architecture."""
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
