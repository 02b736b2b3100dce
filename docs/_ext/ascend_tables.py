"""Writes the tables that the planner and the simulator compute into docs/ascend.md, between its markers.

``python docs/_ext/ascend_tables.py [NAME ...]`` writes the named tables; without names it writes all, in 3 minutes of one core.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import ascend
from ascend.reports.byte_table import byte_table
from ascend.reports.calibration import ASSUMED_SIZE, PUBLISHED_BLOCK, speed, statements
from ascend.reports.published import BUSY_PIPES, FAR_OFF, PredictedTime, comparisons, spread
from ascend.reports.waterfall import waterfall
from mpgemm.cli.common.ascend_options import read_shapes
from mpgemm.experiments.blocking_bits import VARIANTS, blocking_bits

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "ascend.md"
CHIPS = ("910A", "910B3", "310P3")
NOMINAL = ascend.get_chip("910A")
CALIBRATED = NOMINAL.with_calibration()
#: Names of operand formats in the table of plans.
OPERANDS = {"fp32": "FP32", "hf32": "HF32", "fp16": "FP16", "bf16": "BF16"}


def begin(name: str) -> str:
    """Return the marker before a table, whose name is one of :data:`TABLES`."""
    return f"<!-- begin {name}: python docs/_ext/ascend_tables.py -->"


def end(name: str) -> str:
    """Return the marker after a table."""
    return f"<!-- end {name} -->"


def table(page: str, name: str) -> str:
    """Return the text of a page between the markers of a table."""
    return page.partition(begin(name) + "\n\n")[2].partition("\n\n" + end(name))[0]


def plan_row(size: tuple[int, int, int], chip: str, shown: bool) -> str:
    """Return the line of the fastest plan that reaches the bits of FP32."""
    advice = ascend.advise(*size, chip, best_only=True)
    _, plan = advice.best or max(advice.plans, key=lambda pair: pair[1].bits or 0.0)
    s, (bound, busy) = plan.schedule, plan.bound
    operands = OPERANDS[s.operand] if s.terms == 1 else f"{s.terms} terms {s.mode}"
    cells = (
        " x ".join(map(str, size)) if shown else "", chip, operands, f"{1e6 * plan.seconds:.1f}", str(plan.blocking),
        s.placement() if s.on_cube else "vector units", str(s.used_cores), f"{bound} {busy:.0%}".replace("%", " %"),
        f"{plan.bits:.1f}",
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def plans() -> str:
    """Return the table of plans for real shapes."""
    rows = [
        "| m x k x n | chip | operands | time (us) | block | placed | cores | bound, busy | bits |",
        "|---" * 9 + "|",
    ]
    for _, size in read_shapes(DOCS / "ascend_shapes.txt"):
        rows += [plan_row(size, chip, chip == CHIPS[0]) for chip in CHIPS]
    return "\n".join(rows)


def advice() -> str:
    """Return the sentences that `mpgemm plan` prints for one shape."""
    sentences = ascend.advise(32, 4096, 11008, "910B3").sentences()
    return "\n".join(["```", "$ mpgemm plan 32 4096 11008 --chip 910B3 --top 1", *sentences, "```"])


def front() -> str:
    """Return the table of the plans on the Pareto front of time and bits."""
    rows = ["| us | bits | us for each bit more | what |", "|---|---|---|---|"]
    for point in ascend.pareto(4096, 4096, 4096, "910A"):
        if point.on_front:
            cost = "" if point.seconds_per_bit is None else f"{1e6 * point.seconds_per_bit:.3g}"
            rows.append(f"| {1e6 * point.plan.seconds:.4g} | {point.bits:.2f} | {cost} | {point.label()} |")
    return "\n".join(rows)


def published() -> str:
    """Return the tables of published and predicted times and busy ratios, with the errors of the predictions."""
    return published_of(comparisons())


def published_of(found: list[PredictedTime]) -> str:
    """Return the tables of :func:`published` for comparisons that were already made."""
    rows = [
        "| source | case | chip | m x k x n | block, placed | published us | predicted | error | |",
        "|---" * 9 + "|",
    ]
    busy = ["| | chip | size | cube | MTE1 | MTE2 | FIXPIPE | scalar | |", "|---" * 9 + "|"]
    far = []
    for c in found:
        m, fitted = c.measurement, "fitted" if c.measurement.fitted else ""
        rows.append(
            f"| {m.source} | {m.name} | {m.chip} | {m.m} x {m.k} x {m.n} {m.operand} | {c.schedule.blocking} "
            f"{c.schedule.placement()} | {m.microseconds:.4g} | {c.predicted:.4g} | {c.error:+.0%} | {fitted} |"
        )
        if m.busy:
            pairs = [f"{there:.2f} / {here:.2f}" for there, here in zip(m.busy, c.busy, strict=True)]
            cells = " | ".join([*pairs, *[""] * (len(BUSY_PIPES) - len(pairs))])
            busy.append(f"| {m.name} | {m.chip} | {m.m}^3 | {cells} | {fitted} |")
        if abs(c.error) > FAR_OFF:
            far.append(f"- {m.name}, {m.m} x {m.k} x {m.n} ({c.error:+.0%}): {m.remark}.")
    new, old = (spread([c for c in found if c.measurement.fitted == fitted]) for fitted in (False, True))
    off = (
        f"{new.rows} rows were not used in a fit. The rms errors of their predictions are {new.time:.1%} for times (logarithm "
        f"of predicted over published), {new.busy:.3f} for the busy ratios of all pipes, and {new.scalar:.3f} for those of the "
        f"scalar unit alone. For the {old.rows} fitted rows these errors are {old.time:.1%}, {old.busy:.3f} and "
        f"{old.scalar:.3f}. "
        f"The following rows are more than {FAR_OFF:.0%} off, with the reason if it is known:"
    )
    return "\n".join([*rows, "", "Busy ratios of the pipes, published / predicted:", "", *busy, "", off, "", *far])


def paper() -> str:
    """Return the table of the paper's statements and the numbers of this model."""
    rows = ["| statement | published | nominal | calibrated | the last column is |", "|---" * 5 + "|"]
    for s in statements():
        kind = "fitted" if s.used_in_fit else "predicted"
        rows.append(f"| {s.statement} | {s.published} | {s.nominal:.4g} | {s.calibrated:.4g} | {kind} |")
    return "\n".join(rows)


def losses() -> str:
    """Return the table of losses from the peak to the calibrated speed."""
    rows = ["| cause | TFLOP/s | lost | |", "|---" * 4 + "|"]
    for step in waterfall(ascend.build_schedule(*ASSUMED_SIZE, CALIBRATED, PUBLISHED_BLOCK)):
        rows.append(f"| {step.cause} | {step.tflops:.1f} | {step.lost:.1f} | {'fitted' if step.fitted else ''} |")
    return "\n".join(rows)


def squares() -> str:
    """Return the table of blocks (b, 64, b) of the paper's kernel at the assumed size."""
    blocks = [ascend.Blocking(b, 64, b) for b in (64, 96, 128, 160, 176, 192)]
    waves = [str(ascend.build_schedule(*ASSUMED_SIZE, NOMINAL, block).waves) for block in blocks]
    speeds = [[f"{speed(chip, ASSUMED_SIZE, block):.1f}" for block in blocks] for chip in (NOMINAL, CALIBRATED)]
    names = ("block (b, 64, b)", "waves", "nominal, predicted", "calibrated, predicted")
    cells = ([str(block.bm) for block in blocks], waves, *speeds)
    head, *rows = (f"| {name} | {' | '.join(values)} |" for name, values in zip(names, cells, strict=True))
    return "\n".join([head, "|---" * (len(blocks) + 1) + "|", *rows])


def moved() -> str:
    """Return the table of the bytes by eq. 9 and of the schedule."""
    rows = ["| | eq. 9, one term | schedule | ratio | factors |", "|---" * 5 + "|"]
    for row in byte_table(ascend.build_schedule(*ASSUMED_SIZE, NOMINAL, PUBLISHED_BLOCK)):
        factors = (
            "; ".join(f"{f.value:.4g}: {f.reason}" for f in row.factors) if row.eq9_bytes else row.factors[0].reason
        )
        ratio = f"{row.ratio:.4g}" if row.eq9_bytes else "-"
        rows.append(
            f"| {row.operand} | {row.eq9_bytes / 1e6:.4g} MB | {row.schedule_bytes / 1e6:.4g} MB | {ratio} | {factors} |"
        )
    return "\n".join(rows)


def bits() -> str:
    """Return the sentences and the table about the influence of the block on the result."""
    found = blocking_bits(NOMINAL)
    rows = [
        f"| bk * N_fused | blocks | {' | '.join(label for label, _ in VARIANTS)} |",
        "|---" * (2 + len(VARIANTS)) + "|",
    ]
    for length, errors in found.errors.items():
        cells = " | ".join(f"{errors[label]:.2e}" for label, _ in VARIANTS)
        rows.append(f"| {length} | {found.chains[length]} | {cells} |")
    told = (
        f"The {found.blocks} blocks have {len(found.chains)} lengths of a chain in L0C, bk * N_fused, and give {found.results} "
        f"different results. The number of lengths with more than one result is {found.mixed}."
    )
    return "\n".join([told, "", *rows])


TABLES: dict[str, Callable[[], str]] = {
    "plans": plans, "advice": advice, "front": front, "published": published, "paper": paper, "losses": losses,
    "squares": squares, "moved": moved, "bits": bits,
}  # fmt: skip


def main(names: list[str]) -> None:
    """Write the named tables, or all tables, into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name in names or TABLES:
        page = page.replace(
            f"{begin(name)}\n\n{table(page, name)}\n\n{end(name)}", f"{begin(name)}\n\n{TABLES[name]()}\n\n{end(name)}"
        )
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
