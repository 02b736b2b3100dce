"""`mpgemm evaluate`: how accurate SGEMM-cube and native GEMMs are on given or generated matrices."""

import argparse
import sys
from dataclasses import asdict, astuple, fields

from mpgemm.amx import USUAL, unit_missing
from mpgemm.commands import attention
from mpgemm.commands.ascend_options import parse_block
from mpgemm.commands.inputs import add_input_arguments, cases_of, check_inputs, seeds_of
from mpgemm.commands.outcomes import print_data, print_outcome, write_outcome
from mpgemm.commands.run_options import add_output_arguments, add_run_arguments, check_run, run_resumable
from mpgemm.exact.errors import RELATIVE_METRICS
from mpgemm.experiments import evaluate as evaluation
from mpgemm.experiments.cases import Case, shipped_case
from mpgemm.experiments.executors import open_executor
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.methods import (
    DEFAULT_SCALE_EXPONENTS,
    FAMILIES,
    ON_REQUEST,
    ORDERS,
    STEP_ORDERS,
    CubeOptions,
    build_methods,
)
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.provenance import environment
from mpgemm.experiments.split_figures import SPLIT_FIGURES, split_figure
from mpgemm.experiments.suitability import Suitability, examine
from mpgemm.experiments.sweeps import SWEEP_FIGURES, SWEEP_METHODS, SWEEP_OPTIONS, run_sweep
from mpgemm.inputs import matrices
from mpgemm.inputs.files import write_text
from mpgemm.reporting import plots, report

_STEP_NOTE = (
    "How the cube rounds inside a step of 16 products is not published: sequential sums are the pessimistic assumption, "
    "--step-orders exact the optimistic one."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add_input_arguments(parser, "the pairs that ship with the package")
    what = parser.add_argument_group("what to compare")
    what.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help=f"{', '.join(FAMILIES)}; on request {', '.join(ON_REQUEST)}; "
        "engine:ARCH:INSTRUCTION or recovery:METHOD@ENGINE",
    )
    what.add_argument(
        "--engine",
        "--engines",
        nargs="+",
        action="extend",
        default=[],
        metavar="ARCH:INSTRUCTION",
        help="add matrix engines of the catalogue",
    )
    what.add_argument("--orders", nargs="+", default=["elementwise", "termwise"], choices=ORDERS)
    what.add_argument(
        "--scale-exponents",
        nargs="+",
        type=_scale_exponent,
        metavar="S_B",
        help='s_b of SGEMM-cube: integers or "auto" (default 0 6 12 auto)',
    )
    what.add_argument(
        "--step-orders",
        nargs="+",
        default=["sequential"],
        choices=STEP_ORDERS,
        help="rounding inside a cube step of 16 products (not published; default sequential)",
    )
    what.add_argument("--block", metavar="BM,BK,BN", help="block sizes on the 910A (default: all of k in one chain)")
    what.add_argument(
        "--figure",
        nargs="+",
        default=[],
        choices=[*SPLIT_FIGURES, *SWEEP_FIGURES],
        help="reproduce figures of the SGEMM-cube paper instead",
    )
    what.add_argument(
        "--verify",
        nargs="?",
        const=16,
        type=int,
        metavar="N",
        help="check N sampled entries of the exact product against mpmath (default 16)",
    )
    attention.add_arguments(what)
    add_run_arguments(parser)
    add_output_arguments(parser)


def _scale_exponent(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'a scale exponent is an integer or "auto", got {text!r}') from None


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status."""
    attention.check(args)
    if args.attention:
        return attention.run(args)
    _check(args)
    return run_resumable(args, _run)


def _run(args: argparse.Namespace, journal: Journal) -> int:
    with open_executor(args.workers, args.cluster) as executor:
        context = Context(journal=journal, progress=report.Progress(sys.stderr), executor=executor)
        return _run_figures(args, context) if args.figure else _run_cases(args, context)


def _check(args: argparse.Namespace) -> None:
    """Refuse combinations of options that contradict each other."""
    check_inputs(args, "--figure" if args.figure else "")
    if args.shape and len(args.shape) > 1 and args.figure:
        raise ValueError("--figure takes one --shape")
    if args.shape and not (args.distribution or args.figure):
        raise ValueError("--shape goes with --distribution or --figure")
    if args.verify is not None and args.verify < 1:
        raise ValueError(f"--verify needs at least 1 entry, got {args.verify}")
    check_run(args)


# -- tables -----------------------------------------------------------------------------------------------------------
def _run_cases(args: argparse.Namespace, context: Context) -> int:
    cases = cases_of(args, [shipped_case(name) for name in matrices.SHIPPED])
    names = [*(args.methods or FAMILIES), *(f"engine:{name}" for name in args.engine)]
    options = _cube_options(args, DEFAULT_SCALE_EXPONENTS)
    if "amx" in names and (missing := unit_missing(USUAL)):
        print(f"mpgemm evaluate: amx is left out: {missing}", file=sys.stderr)
        names = [name for name in names if name != "amx"]
    methods = build_methods(names, options)
    records = evaluation.evaluate(cases, methods, context.journal, context.progress, context.executor)
    summaries = evaluation.summarise(records)
    fixed_scales = [s for s in options.scale_exponents if isinstance(s, int)]
    inputs = [(case, examine(*case.load(), fixed_scales)) for case in _one_each(cases)]
    checks = [(case, *evaluation.verify_entries(case, args.verify)) for case in cases] if args.verify else []
    result = {
        "environment": environment(),
        "inputs": [
            {"case": case.label, "identity": dict(case.identity), "note": case.note, **suit.to_dict()}
            for case, suit in inputs
        ],
        "summaries": [asdict(summary) for summary in summaries],
        "records": [record.to_dict() for record in records],
        "verified": [{"case": case.label, "checked": n, "agreeing": good} for case, n, good in checks],
    }
    table = report.Table("", [field.name for field in fields(evaluation.Summary)], [astuple(s) for s in summaries])
    if args.out:
        result["written"] = _write_cases(args, result, table, inputs, summaries)
    if args.json:
        sys.stdout.write(report.json_text(result))
    elif args.csv:
        sys.stdout.write(table.to_csv())
    else:
        _print_cases(inputs, summaries, checks)
        for record in records:
            if record.method == "amx" and record.details["path"] == "numpy":
                print(f"{record.case}: {record.label} is numpy's product here: {record.details['reason']}")
        if args.out:
            print(f"\nwritten to {args.out}: {', '.join(sorted(result['written']))}")
    wrong = [case.label for case, n, good in checks if good != n]
    if wrong:
        print(f"mpgemm evaluate: the exact product disagrees with mpmath on {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def _cube_options(args: argparse.Namespace, default_scales: tuple) -> CubeOptions:
    return CubeOptions(
        tuple(args.orders),
        tuple(args.scale_exponents or default_scales),
        tuple(args.step_orders),
        parse_block(args.block) if args.block else None,
    )


def _one_each(cases: list[Case]) -> list[Case]:
    """The first case of each group."""
    return list({case.group: case for case in reversed(cases)}.values())[::-1]


def _print_cases(inputs, summaries, checks) -> None:
    for case, suit in inputs:
        members = [summary for summary in summaries if summary.group == case.group]
        print()
        accuracy_table(case.group, members).print()
        if any(summary.method.startswith(("sgemm_cube", "fp16")) for summary in members):
            print(_STEP_NOTE)
        if case.note:
            print(f"Input: {case.note}")
        print(f"This input {suit.verdict}")
        range_table(suit).print()
    for case, count, agreeing in checks:
        print(f"{case.label}: {agreeing} of {count} sampled entries of the exact product agree with mpmath")


def accuracy_table(group: str, summaries: list[evaluation.Summary]) -> report.Table:
    """Errors of the methods on one input."""
    seeds = max((summary.count for summary in summaries), default=1)
    title = group + (f", mean over {seeds} seeds" if seeds > 1 else "")
    headings = [
        "method",
        "result",
        "error (eq. 13)",
        "bits",
        "inf-norm error",
        "normwise",
        "componentwise",
        "max ulp",
        "mean ulp",
        "correctly rounded",
    ]
    rows = [
        [
            s.label,
            s.format,
            s.relative_frobenius,
            s.effective_bits,
            s.relative_inf,
            s.normwise,
            s.componentwise,
            s.max_ulp,
            s.mean_ulp,
            f"{s.bits_equal:.1%}",
        ]
        for s in summaries
    ]
    if any(s.method == "amx" for s in summaries):  # a real unit's time; of the models it is the model's
        headings.append("seconds here")
        rows = [[*row, s.seconds] for row, s in zip(rows, summaries, strict=True)]
    return report.Table(title, headings, rows)


def range_table(suit: Suitability) -> report.Table:
    """Range and bits kept of both operands."""
    rows = []
    for matrix in (suit.a, suit.b):
        exponents = f"{matrix.smallest_exponent} to {matrix.largest_exponent}" if matrix.histogram else "-"
        for kept in matrix.choices:
            mark = " (recommended)" if kept.scale_exponent == matrix.recommended else ""
            bits = ("-", "-") if kept.worst_bits is None else (f"{kept.worst_bits:.1f}", f"{kept.mean_bits:.1f}")
            rows.append(
                [
                    matrix.name,
                    exponents,
                    matrix.zeros,
                    matrix.overflow,
                    matrix.lost,
                    matrix.subnormal,
                    f"{kept.scale_exponent}{mark}",
                    *bits,
                    kept.losing,
                ]
            )
            exponents = ""
    headings = [
        "operand",
        "exponents",
        "zeros",
        "overflow fp16",
        "lost in fp16",
        "fp16 subnormal",
        "s_b",
        "fewest bits kept",
        "mean",
        "below 22 bits",
    ]
    return report.Table("Range of the operands and bits kept by the split", headings, rows)


def _write_cases(args, result, table, inputs, summaries) -> list[str]:
    write_text(args.out / "results.json", report.json_text(result))
    write_text(args.out / "results.csv", table.to_csv())
    written = ["results.json", "results.csv", "journal.jsonl"]
    if args.no_figures:
        return written
    groups = {
        case.group: [(s.label, getattr(s, args.metric)) for s in summaries if s.group == case.group]
        for case, _ in inputs
    }
    figure = plots.method_errors(groups, "Error of each method", RELATIVE_METRICS[args.metric])
    plots.save_figure(figure, args.out / "errors.png")
    written.append("errors.png")
    for number, (case, suit) in enumerate(inputs, 1):
        name = f"exponents_{number}.png" if len(inputs) > 1 else "exponents.png"
        histograms = {"A": suit.a.histogram, "B": suit.b.histogram}
        plots.save_figure(plots.exponent_histogram(histograms, case.group), args.out / name)
        written.append(name)
    return written


# -- figures of the paper ---------------------------------------------------------------------------------------------
def _run_figures(args: argparse.Namespace, context: Context) -> int:
    outcomes = [_figure(args, name, context) for name in args.figure]
    written = [file for outcome in outcomes for file in write_outcome(args, outcome)] if args.out else []
    if args.json:
        figures = {name: outcome.data["figure"] for name, outcome in zip(args.figure, outcomes, strict=True)}
        sys.stdout.write(report.json_text({"environment": environment(), "figures": figures, "written": written}))
        return 0
    for outcome in outcomes:
        print_data(args, outcome) if args.csv else print_outcome(outcome)
    if written and not args.csv:
        print(f"\nwritten to {args.out}: {', '.join(sorted(written))}")
    return 0


def _figure(args: argparse.Namespace, name: str, context: Context) -> Outcome:
    stem = f"figure_{name}"
    if name in SPLIT_FIGURES:
        return split_figure(name, journal=context.journal, progress=context.progress).outcome(stem)
    names = [*(args.methods or SWEEP_METHODS), *(f"engine:{engine}" for engine in args.engine)]
    methods = build_methods(names, _cube_options(args, SWEEP_OPTIONS.scale_exponents))
    shape = tuple(args.shape[0]) if args.shape else None
    sweep = run_sweep(
        name, methods, seeds_of(args, 5), shape, None, context.journal, context.progress, context.executor
    )
    return sweep.outcome(stem, args.metric)
