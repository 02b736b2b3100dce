"""Shows plans as tables, and prints the fields and shapes to enter into a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import ascend
from mpgemm.reporting.report import Table, fitted

if TYPE_CHECKING:
    from ascend.planner.result import Plan

Size = tuple[int, int, int]

#: Columns of a plan that describe its schedule, speed and accuracy.
_OF_A_SCHEDULE = ("chain", "mode", "grid", "seconds", "tflops", "bound", "busy", "bits", "placed")


def plan_table(plans: list[Plan], title: str) -> Table:
    if plans[0].traffic:
        headings = [
            "bm", "bk", "bn", "n_fused", "fusion_efficiency", "tflops", "seconds", "cube_efficiency", "operational_intensity",
            "waves", "k_groups", "error",
        ]  # fmt: skip
        rows = [
            [
                p.blocking.bm, p.blocking.bk, p.blocking.bn, p.n_fused, f"{p.fusion_efficiency:.4f}", p.tflops,
                p.seconds, p.timeline.cube_efficiency if p.timeline else "",
                p.roofline.operational_intensity, p.schedule.waves, p.schedule.groups, p.error,
            ]
            for p in plans
        ]  # fmt: skip
        return Table(title, headings, rows)
    headings = ["bm", "bk", "bn", *_OF_A_SCHEDULE, "error"]
    rows = [[p.blocking.bm, p.blocking.bk, p.blocking.bn, *_of_a_schedule(p), p.error] for p in plans]
    return Table(title, headings, rows)


def tiling_text(plan: Plan, target: str | None) -> Iterator[str | Table]:
    """Yield the fields and shapes to enter into a kernel, and the buffers of a core."""
    from ascend.dialects import DIALECTS
    from ascend.reports.tiling import notes, snippets, tile_shapes
    from ascend.tiling.fields import described

    if plan.schedule.on_cube:
        for name, text in snippets(plan.schedule).items():
            if target not in (None, name):
                continue
            yield f"\n{DIALECTS[name].title if name in DIALECTS else name}:\n"
            yield text
            other = described(plan.schedule, name) if name in DIALECTS else None
            if other is not None:
                time = ascend.simulate(other).seconds
                yield fitted(
                    f"these fields cannot express this plan: their kernel takes {1e6 * time:.4g} us, the plan "
                    f"{1e6 * plan.seconds:.4g}; --for {name} plans only what they express"
                )
            elif name in DIALECTS:
                yield fitted(_emission(name, plan))
        if plan.schedule.placed_on.fixpipe and target in (None, "catlass"):
            yield from _matmul_v3(plan)
        yield ""
    yield from (fitted(f"note: {note}") for note in notes(plan.schedule))
    yield ""
    buffers = [tuple(row) for row in tile_shapes(plan.schedule)]
    yield Table("Buffers of a core", ("buffer", "holds", "layout", "bytes", "limit"), buffers)


def _matmul_v3(plan: Plan) -> Iterator[str]:
    """Yield the key and the fields with which CANN's operator runs the plan's tiles, or why it cannot."""
    from ascend.reports.matmul_v3 import matmul_v3_snippet

    yield "\nMatMulV3 (CANN's operator):\n"
    try:
        yield matmul_v3_snippet(plan.schedule)
    except ValueError as error:
        yield fitted(str(error))


def _emission(dialect: str, plan: Plan) -> str:
    """Return a sentence that says whether --emit writes the plan's kernel in a dialect, and if not, why."""
    from mpgemm.cli.ascend_views.advice import kernel_files

    try:
        kernel_files(dialect, plan.schedule)
    except ValueError as error:
        return f"--emit {dialect} does not write this kernel: {error}"
    return f"--emit {dialect} FOLDER writes this kernel"


def overview_table(chips: list[ascend.Chip], best: list[tuple[str, Size, list[Plan]]]) -> Table:
    """Return a table with one line for each shape and chip."""
    lines = [
        [
            name, chip.name, p.schedule.operand + (f" x {p.schedule.terms}" if p.schedule.terms > 1 else ""),
            str(p.blocking), *_of_a_schedule(p),
        ]
        for name, _, plans in best
        for chip, p in zip(chips, plans, strict=True)
    ]  # fmt: skip
    return Table("Best plans of C = A B (m x k x n)", ["shape", "chip", "operand", "block", *_OF_A_SCHEDULE], lines)


def _of_a_schedule(p: Plan) -> list:
    """Return the cells of the columns :data:`_OF_A_SCHEDULE`."""
    s, (bound, share) = p.schedule, p.bound
    return [
        s.chain, s.mode if s.terms > 1 else "-", s.cores_text(), f"{p.seconds:.3e}", p.tflops, bound,
        f"{share:.2f}" if share == share else "", f"{p.bits:.1f}" if p.bits else "", s.placement(),
    ]  # fmt: skip
