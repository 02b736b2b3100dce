"""Makes the output of `mpgemm plan` besides plans of one kernel: advice on operands, plans of batches, sensitivities."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import ascend
from mpgemm.cli.common.ascend_options import evidence, kernel_of
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, Table, fitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ascend.kernels.base import Kernel
    from ascend.reports.waterfall import Sensitivity

Size = tuple[int, int, int]


def compares(args: argparse.Namespace) -> bool:
    """Return whether the command compares ways to compute, because no option names the way."""
    from ascend.dialects import ANY, DIALECTS

    several_terms_only = not DIALECTS.get(args.target, ANY).one_term
    naming = {
        "--terms": args.terms is not None, "--operand": args.operand, "--mode": args.mode, "--block": args.block,
        "--max-error": args.max_error is not None, "--rank": args.rank != "time", "--kernel": args.kernel != "grid",
        f"{'--emit' if args.emit else '--for'} {args.target}": several_terms_only,
    }  # fmt: skip
    given = [option for option, names_the_way in naming.items() if names_the_way]
    if args.reach is not None and given:
        raise ValueError(
            f"--reach itself chooses terms, operands, mode and block, got {', '.join(given)}: leave them out, or "
            "leave --reach out"
        )
    return not given


def advice_of(
    args: argparse.Namespace, chip: ascend.Chip, size: Size, data: tuple | None, best_only: bool = False
) -> ascend.Advice:
    """Return the comparison of all ways to compute the product."""
    from ascend.planner.advice import WAYS

    progress = Progress()
    options = kernel_of(args)
    del options["terms"], options["operand"]
    return ascend.advise(
        *size, chip, bits=args.reach, data=data, distribution=args.distribution, split=args.split,
        simulated=args.simulate, target=args.target or "", ways=WAYS, best_only=best_only,
        progress=lambda done, total: progress(done, total, "ways"), **options,
    )  # fmt: skip


def kernel_files(dialect: str, s: Kernel) -> dict[str, str | dict]:
    """Return the files of a plan's kernel in a dialect. Raises ValueError if the dialect cannot express the kernel."""
    from ascend.emit.write import EMITTERS
    from mpgemm.kernels.planned import triton_files

    return (EMITTERS | {"triton": triton_files})[dialect](s)


def written_out(advice: ascend.Advice, dialect: str) -> tuple[ascend.Advice, list[str]]:
    """Return the ways whose kernel a dialect can express, and for each faster way the reason why it is left out.

    Raises ValueError with the first way's reason if the dialect can express no way.
    """
    kept, reasons = [], {}
    for way, plan in advice.plans:
        try:
            kernel_files(dialect, plan.schedule)
        except ValueError as error:
            reasons[str(way)] = str(error)
        else:
            kept.append((way, plan))
    if not kept:
        raise ValueError(next(iter(reasons.values())))
    found = replace(advice, plans=tuple(kept))
    best = found.best[1].seconds if found.best else math.inf
    faster = [
        str(way) for way, plan in advice.plans if str(way) in reasons and advice.reaches(plan) and plan.seconds < best
    ]
    return found, [f"{way} would be faster, but {dialect} cannot express it: {reasons[way]}" for way in faster]


def sensitivity_table(found: Sequence[Sensitivity]) -> Table:
    """Return a table of TFLOP/s where one chip parameter changes by 20 %; the parameter with the largest effect comes first."""
    rows = [
        (r.parameter, f"{r.value:g}", r.unit, r.kind, r.lower, r.higher, r.elasticity)
        for r in found
        if abs(r.elasticity) > 1e-6
    ]
    headings = ("parameter", "value", "unit", "kind", "-20 %", "+20 %", "elasticity")
    return Table("TFLOP/s when one parameter changes by 20 %", headings, rows)


def batch(args: argparse.Namespace, chip: ascend.Chip) -> Output:
    """Return the plan of several products, each of which runs on a group of cores."""
    rows, k, n = _products(args)
    options = kernel_of(args) | {"mode": args.mode, "split": args.split, "distribution": args.distribution}
    options["target"] = args.target or ""
    found = ascend.plan_batch(rows, k, n, chip, **options)
    best = found[0]
    written = _batch_emitted(args, best) if args.emit else []
    result = {
        "chip": chip.name, "k": k, "n": n, "products": len(rows), "seconds": best.seconds, "groups": best.groups,
        "cores": best.cores, "written": written,
        "plans": [
            row | {"tiling": ascend.tiling_fields(plan.schedule)}
            for row, plan in zip(best.to_rows(), best.plans.values(), strict=True)
        ],
        "others": [{"groups": b.groups, "cores": b.cores, "seconds": b.seconds} for b in found[1:]],
    }  # fmt: skip
    lines = [
        (
            rows.count(m), f"{m} x {k} x {n}", str(p.blocking), p.schedule.placement(), p.schedule.cores_text(),
            f"{p.seconds:.3e}", p.bound[0], f"{p.bits:.1f}" if p.bits else "",
        )
        for m, p in best.plans.items()
    ]  # fmt: skip
    headings = ("products", "m x k x n", "block", "placed", "cores of a group", "seconds alone", "bound", "bits")
    others = [(b.groups, b.cores, f"{1e6 * b.seconds:.4g}") for b in found]
    text: list[str | Table] = [
        fitted(evidence(args, chip)), *map(fitted, best.sentences()),
        Table(f"{chip.name}, {options['terms']} term(s) of {options['operand']}", headings, lines),
        Table("Groups of cores", ("groups", "cores each", "us"), others),
    ]  # fmt: skip
    if args.tiling or (args.target and not args.emit):
        text += _batch_tiling(args, chip, best)
    if written:
        text.append(f"\nwritten: {', '.join(written)}")
    return Output(result, text)


def _batch_tiling(args: argparse.Namespace, chip: ascend.Chip, best: ascend.BatchPlan) -> Iterator[str]:
    """Yield AscendC's fields of each product on its group of cores, and the CATLASS kernel that multiplies all products."""
    from ascend.dialects import DIALECTS
    from ascend.emit.catlass import of_most_work
    from ascend.reports.catlass import catlass_text
    from ascend.reports.tiling import ascendc_snippet
    from ascend.tiling.fields import described

    if args.target not in (None, "ascendc", "catlass"):
        yield fitted(
            f"no kernel of several products is known for {args.target}: --tiling prints those of AscendC and CATLASS"
        )
    if args.target in (None, "ascendc") and DIALECTS["ascendc"].has(chip):
        for m, plan in best.plans.items():
            yield f"\n{DIALECTS['ascendc'].title}, m = {m}, on a group of {best.cores} cores:\n"
            yield ascendc_snippet(plan.schedule)
            if described(plan.schedule) is not None:
                yield fitted(
                    "AscendC's fields give each core one rectangle of C, and this plan does not: --for ascendc plans rectangles"
                )
    if args.target in (None, "catlass") and DIALECTS["catlass"].has(chip):
        text = catlass_text(of_most_work(best), "batch" if len(best.plans) == 1 else "groups")
        yield f"\n{DIALECTS['catlass'].title}, all products on all cores:\n"
        yield text or fitted(
            "CATLASS gives whole tiles to cores one by one, and this plan does not: plan with --for catlass --split 1"
        )


def _batch_emitted(args: argparse.Namespace, best: ascend.BatchPlan) -> list[str]:
    """Return the files of the CATLASS kernel that multiplies all products. Raises ValueError for another dialect."""
    from ascend.emit.catlass import catlass_batch_files
    from ascend.emit.write import write_files

    dialect, folder = args.emit
    if dialect != "catlass":
        raise ValueError(
            f"--emit {dialect} writes a kernel of one product, but --batch and --grouped plan several products: use --emit "
            "catlass, "
            f"whose kernel computes all of them"
        )
    return list(map(str, write_files(folder, catlass_batch_files(best))))


def _products(args: argparse.Namespace) -> tuple[list[int], int, int]:
    """Return m of each product, k and n."""
    if args.batch is not None and args.grouped:
        raise ValueError("got both --batch and --grouped, expected one of them: leave one out")
    if args.grouped:
        if len(args.size) != 2:
            raise ValueError(f"with --grouped the size is K N, got {len(args.size)} number(s): leave M out")
        try:
            rows = [int(m) for m in args.grouped.split(",")]
        except ValueError:
            raise ValueError(f"--grouped got {args.grouped!r}, expected integers M1,M2,...") from None
        return rows, *args.size
    if args.batch < 1:
        raise ValueError(f"--batch must be at least 1, got {args.batch}")
    if len(args.size) != 3:
        raise ValueError(f"with --batch the size is M K N, got {len(args.size)} number(s)")
    m, k, n = args.size
    return [m] * args.batch, k, n
