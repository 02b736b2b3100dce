"""Writes the page that lists every instruction: ``python docs/_ext/instructions_page.py > docs/instructions.md``."""

import dataclasses

from tensorcore_models.accumulators import Accumulator
from tensorcore_models.atlas.evidence import remarks
from tensorcore_models.catalogue import architectures, list_instructions
from tensorcore_models.catalogue.devices import DEVICES
from tensorcore_models.engines.instruction import EVIDENCE, Instruction

HEADER = """# Instructions

<!-- Generated from the catalogue by `python docs/_ext/instructions_page.py > docs/instructions.md`; do not edit. -->

`tensorcore_models.get_instruction(architecture, name)` returns a row of this page. The column "arithmetic" names the class in
`tensorcore_models.accumulators` and the parameters that differ from its defaults. The levels of evidence are, strongest first:
{evidence}. The [atlas](atlas/index.md) explains them.
"""


def describe(spec: Accumulator) -> str:
    """Return an accumulator as text: its class, and the fields that differ from the defaults."""
    if not spec.published:
        return "not public"
    parts = []
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if isinstance(value, Accumulator):
            parts.append(f"{field.name}={describe(value)}")
        elif field.name in ("terms", "fraction_bits", "group") or value != field.default:
            parts.append(f"{field.name}={value}")
    return f"{type(spec).__name__}({', '.join(parts)})"


def _row(ins: Instruction) -> str:
    scale = f"{ins.scale_format}, {ins.block_size}" if ins.scale_format else ""
    note = " ".join([f"{ins.source}.", *remarks(ins.note)])
    formats = f"{ins.a_format} x {ins.b_format} + {ins.c_format} to {ins.d_format}"
    cells = (
        f"`{ins.name}`", ins.shape_text + (f", {ins.blocks} blocks" if ins.blocks > 1 else ""), formats, scale,
        f"`{describe(ins.accumulator)}`", ins.evidence, note,
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def page() -> str:
    """Return the whole page as Markdown."""
    lines = [HEADER.format(evidence=", ".join(EVIDENCE))]
    for arch in architectures():
        rows = list_instructions(arch)
        devices = [name for name, (owner, _) in DEVICES.items() if owner == arch]
        lines.append(f"## {arch} ({len(rows)} rows)\n")
        if devices:
            lines.append(f"Devices: {', '.join(devices)}.\n")
        lines.append("| name | m x n x k | formats | scales | arithmetic | evidence | source |")
        lines.append("|---|---|---|---|---|---|---|")
        lines += [_row(row) for row in rows]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
