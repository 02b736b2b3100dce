"""Makes the output of `mpgemm plan --overlap`: a product split into parts whose communication overlaps with computation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import ascend
from mpgemm.cli.common.ascend_options import evidence, kernel_of, size_of
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, Table, fitted

if TYPE_CHECKING:
    from collections.abc import Sequence


def overlap(args: argparse.Namespace, chip: ascend.Chip) -> Output:
    """Return the fitted communication times, the times for each number of parts, and the fastest number."""
    from ascend.reports.overlap import MOST_PARTS, plan_overlap, read_collective

    m, k, n = size_of(args)
    # Without --terms or --operand the operands are those of frameworks, which have one term.
    options = kernel_of(args) | {"terms": args.terms or 1, "mode": args.mode, "split": args.split}
    progress = Progress()
    found = plan_overlap(
        m, k, n, chip, read_collective(args.overlap), args.collective or "all-reduce", args.ranks,
        args.parts or MOST_PARTS,
        progress=lambda done, total: progress(done, total, "cuts"), target=args.target or "", **options,
    )  # fmt: skip
    lines = [
        (
            cut.parts, f"{1e6 * cut.seconds:.4g}", f"{1e6 * cut.product:.4g}", f"{1e6 * cut.communication:.4g}",
            f"{1e6 * cut.exposed:.4g}",
        )
        for cut in found.cuts
    ]  # fmt: skip
    title = f"{chip.name}, C = A B with A {m} x {k}, B {k} x {n}, {options['terms']} term(s) of {options['operand']}, "
    title += f"{found.collective} of {found.size:.4g} bytes"
    headings: Sequence[str] = ("parts", "us", "products us", "communication us", "exposed us")
    result = {
        "chip": chip.name, "m": m, "k": k, "n": n, "collective": found.collective, "bytes": found.size,
        "link": found.link._asdict(), "cuts": found.to_rows(), "best": found.best.parts,
    }  # fmt: skip
    limits = (
        "assumed: computation and communication run side by side at full speed, each part is a launch of its own; contention "
        "for memory is not in the times"
    )
    said = [evidence(args, chip), *found.sentences(), limits]
    return Output(result, [*map(fitted, said), Table(title, headings, lines)])
