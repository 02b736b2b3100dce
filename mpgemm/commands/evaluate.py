"""`mpgemm evaluate`: how accurate SGEMM-cube and native GEMMs are on given or generated matrices."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from mpgemm.inputs import matrices
from mpgemm.reporting import plots, report
from mpgemm.commands.ascend_options import parse_block
from mpgemm.commands.run_options import add_output_arguments, check_run, environment, run_resumable
from mpgemm.exact.errors import RELATIVE_METRICS
from mpgemm.experiments import evaluate as evaluation
from mpgemm.experiments.accuracy_figures import SWEEP_FIGURES, SWEEP_METHODS, SWEEP_OPTIONS, run_sweep
from mpgemm.experiments.cases import Case, file_case, generated_cases, shipped_case
from mpgemm.experiments.executors import open_executor
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.methods import (
    DEFAULT_SCALE_EXPONENTS,
    FAMILIES,
    ORDERS,
    STEP_ORDERS,
    CubeOptions,
    build_methods,
)
from mpgemm.experiments.split_figures import SPLIT_FIGURES, split_figure
from mpgemm.experiments.suitability import Suitability, examine
from mpgemm.inputs.files import write_text

_DEFAULT_SHAPE = (256, 256, 256)
_STEP_NOTE = (
    "How the cube rounds inside a step of 16 products is not published: sequential sums are the pessimistic assumption, "
    "--step-orders exact the optimistic one."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    source = parser.add_argument_group("input (default: the pairs that ship with the package)")
    source.add_argument("files", nargs="*", metavar="FILE",
                        help="A and B (or one file and both names): .npy, .npz, .mtx or .safetensors")
    source.add_argument("--a-name", help="array or tensor of the first file")
    source.add_argument("--b-name", help="array or tensor of the second file")
    source.add_argument("--shipped", nargs="+", metavar="NAME", help=f"shipped pairs: {', '.join(matrices.SHIPPED)}")
    source.add_argument("--distribution", metavar="NAME", help=f"generate: {', '.join(matrices.DISTRIBUTIONS)}")
    source.add_argument("--param", nargs="+", default=[], metavar="KEY=VALUE", help="parameters of the distribution")
    source.add_argument("--shape", nargs=3, type=int, metavar=("M", "K", "N"), help="sizes of generated matrices")
    source.add_argument("--seed", type=int, default=0, help="first seed (default 0)")
    source.add_argument("--repeats", type=int, help="number of seeds (default 1, for figures 5)")
    what = parser.add_argument_group("what to compare")
    what.add_argument("--methods", nargs="+", metavar="NAME",
                      help=f"{', '.join(FAMILIES)} or engine:ARCH:INSTRUCTION")
    what.add_argument("--engine", action="append", default=[], metavar="ARCH:INSTRUCTION",
                      help="add a matrix engine of the catalogue")
    what.add_argument("--orders", nargs="+", default=["elementwise", "termwise"], choices=ORDERS)
    what.add_argument("--scale-exponents", nargs="+", type=_scale_exponent, metavar="S_B",
                      help='s_b of SGEMM-cube: integers or "auto" (default 0 6 12 auto)')
    what.add_argument("--step-orders", nargs="+", default=["sequential"], choices=STEP_ORDERS,
                      help="rounding inside a cube step of 16 products (not published; default sequential)")
    what.add_argument("--block", metavar="BM,BK,BN", help="block sizes on the 910A (default: all of k in one chain)")
    what.add_argument("--metric", default="relative_frobenius", choices=list(RELATIVE_METRICS),
                      help="what the figures show")
    what.add_argument("--figure", nargs="+", default=[], choices=[*SPLIT_FIGURES, *SWEEP_FIGURES],
                      help="reproduce figures of the SGEMM-cube paper instead")
    what.add_argument("--verify", nargs="?", const=16, type=int, metavar="N",
                      help="check N sampled entries of the exact product against mpmath (default 16)")
    what.add_argument("--workers", type=int, default=1, metavar="N", help="inputs measured side by side (default 1)")
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
    _check(args)
    return run_resumable(args, _run)


def _run(args: argparse.Namespace, journal: Journal) -> int:
    result = _run_figures(args, journal) if args.figure else _run_cases(args, journal)
    if args.json:
        sys.stdout.write(report.json_text(result))
    elif args.out:
        print(f"\nwritten to {args.out}: {', '.join(sorted(result['written']))}")
    wrong = [check["case"] for check in result.get("verified", []) if check["agreeing"] != check["checked"]]
    if wrong:
        print(f"mpgemm evaluate: the exact product disagrees with mpmath on {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def _check(args: argparse.Namespace) -> None:
    """Refuse combinations of options that contradict each other."""
    sources = [name for name, given in (
        ("two files", args.files), ("--shipped", args.shipped), ("--distribution", args.distribution),
        ("--figure", args.figure)) if given]
    if len(sources) > 1:
        raise ValueError(f"one kind of input at a time, got {' and '.join(sources)}")
    if len(args.files) == 1 and args.a_name and args.b_name:
        args.files = 2 * args.files
    if args.files and len(args.files) != 2:
        raise ValueError(f"give two matrix files, A and B, or one with --a-name and --b-name; got {len(args.files)}")
    if not args.files and (args.a_name or args.b_name):
        raise ValueError("--a-name and --b-name go with two matrix files")
    if args.param and not args.distribution:
        raise ValueError("--param goes with --distribution")
    if args.shape and not (args.distribution or args.figure):
        raise ValueError("--shape goes with --distribution or --figure")
    if args.verify is not None and args.verify < 1:
        raise ValueError(f"--verify needs at least 1 entry, got {args.verify}")
    check_run(args)


def _cases(args: argparse.Namespace) -> list[Case]:
    if args.files:
        return [file_case(Path(args.files[0]), Path(args.files[1]), args.a_name, args.b_name)]
    if args.distribution:
        parameters = dict(_parameter(text) for text in args.param)
        seeds = range(args.seed, args.seed + (args.repeats or 1))
        return generated_cases(args.distribution, args.shape or _DEFAULT_SHAPE, seeds, parameters)
    return [shipped_case(name) for name in args.shipped or matrices.SHIPPED]


def _parameter(text: str) -> tuple[str, float]:
    key, _, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        raise ValueError(f"--param {text!r}: expected KEY=NUMBER") from None


# -- tables -----------------------------------------------------------------------------------------------------------
def _run_cases(args: argparse.Namespace, journal: Journal) -> dict:
    cases = _cases(args)
    names = [*(args.methods or FAMILIES), *(f"engine:{name}" for name in args.engine)]
    options = _cube_options(args, DEFAULT_SCALE_EXPONENTS)
    methods = build_methods(names, options)
    with open_executor(args.workers) as executor:
        records = evaluation.evaluate(cases, methods, journal, report.Progress(sys.stderr), executor)
    summaries = evaluation.summarise(records)
    fixed_scales = [s for s in options.scale_exponents if isinstance(s, int)]
    inputs = [(case, examine(*case.load(), fixed_scales)) for case in _one_each(cases)]
    checks = [(case, *evaluation.verify_entries(case, args.verify)) for case in cases] if args.verify else []
    if not args.json:
        _print_cases(inputs, summaries, checks)
    result = {
        "environment": environment(),
        "inputs": [{"case": case.label, "identity": dict(case.identity), "note": case.note, **suit.to_dict()}
                   for case, suit in inputs],
        "summaries": [asdict(summary) for summary in summaries],
        "records": [record.to_dict() for record in records],
        "verified": [{"case": case.label, "checked": n, "agreeing": good} for case, n, good in checks],
    }
    if args.out:
        result["written"] = _write_cases(args, result, inputs, summaries)
    return result


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
    headings = ["method", "result", "error (eq. 13)", "bits", "inf-norm error", "normwise", "componentwise", "max ulp",
                "mean ulp", "correctly rounded"]
    rows = [
        [s.label, s.format, s.relative_frobenius, s.effective_bits, s.relative_inf, s.normwise, s.componentwise,
         s.max_ulp, s.mean_ulp, f"{s.bits_equal:.1%}"]
        for s in summaries
    ]
    return report.Table(title, headings, rows)


def range_table(suit: Suitability) -> report.Table:
    """Range and bits kept of both operands."""
    rows = []
    for matrix in (suit.a, suit.b):
        exponents = f"{matrix.smallest_exponent} to {matrix.largest_exponent}" if matrix.histogram else "-"
        for kept in matrix.choices:
            mark = " (recommended)" if kept.scale_exponent == matrix.recommended else ""
            bits = ("-", "-") if kept.worst_bits is None else (f"{kept.worst_bits:.1f}", f"{kept.mean_bits:.1f}")
            rows.append([matrix.name, exponents, matrix.zeros, matrix.overflow, matrix.lost, matrix.subnormal,
                         f"{kept.scale_exponent}{mark}", *bits, kept.losing])
            exponents = ""
    headings = ["operand", "exponents", "zeros", "overflow fp16", "lost in fp16", "fp16 subnormal", "s_b",
                "fewest bits kept", "mean", "below 22 bits"]
    return report.Table("Range of the operands and bits kept by the split", headings, rows)


def _write_cases(args, result, inputs, summaries) -> list[str]:
    headings = list(result["summaries"][0]) if summaries else ["group"]
    rows = [list(summary.values()) for summary in result["summaries"]]
    write_text(args.out / "results.json", report.json_text(result))
    write_text(args.out / "results.csv", report.Table("", headings, rows).to_csv())
    written = ["results.json", "results.csv", "journal.jsonl"]
    if args.no_figures:
        return written
    groups = {case.group: [(s.label, getattr(s, args.metric)) for s in summaries if s.group == case.group]
              for case, _ in inputs}
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
def _run_figures(args: argparse.Namespace, journal: Journal) -> dict:
    result: dict = {"environment": environment(), "figures": {}, "written": []}
    for name in args.figure:
        if name in SPLIT_FIGURES:
            data, table, lines, axes = _split(args, name, journal)
        else:
            data, table, lines, axes = _sweep(args, name, journal)
        result["figures"][name] = data
        if not args.json:
            print()
            table.print()
        if args.out:
            result["written"] += _write_figure(args, name, result["environment"], data, table, lines, axes)
    return result


def _split(args, name, journal):
    from mpgemm.reporting.plots import Curve

    figure = split_figure(name, journal=journal, progress=report.Progress(sys.stderr))
    rows = [[e, *(curve.values[i] for curve in figure.curves)] for i, e in enumerate(figure.exponents)]
    table = report.Table(f"Figure {name}: {figure.title}", ["exponent", *(c.label for c in figure.curves)], rows)
    lines = [Curve(c.label, figure.exponents, c.values, "-" if c.kind == "formula" else ":") for c in figure.curves]
    axes = {"title": figure.title, "x_label": "exponent of the number", "y_label": figure.y_label, "log_y": False}
    return figure.to_dict(), table, lines, axes


def _sweep(args, name, journal):
    from mpgemm.reporting.plots import Curve

    row = SWEEP_FIGURES[name]
    with open_executor(args.workers) as executor:
        sweep = run_sweep(
            name,
            range(args.seed, args.seed + (args.repeats or 5)),
            tuple(args.shape) if args.shape else None,
            methods=[*(args.methods or SWEEP_METHODS), *(f"engine:{engine}" for engine in args.engine)],
            options=_cube_options(args, SWEEP_OPTIONS.scale_exponents),
            journal=journal,
            progress=report.Progress(sys.stderr),
            executor=executor,
        )
    values = {label: sweep.curve(method, args.metric) for method, label in sweep.methods.items()}
    sizes = [f"{m}x{k}x{n}" for m, k, n in sweep.shapes]
    rows = [[x, size, *(curve[i] for curve in values.values())]
            for i, (x, size) in enumerate(zip(sweep.points, sizes, strict=True))]
    fixed = [f", {letter} = {size}" for letter, size, own in zip("mkn", sweep.shapes[0], row.shape, strict=True)
             if own != -1 and not row.sweeps_exponent]
    title = f"Figure {name}: {row.title}{''.join(fixed)}, {_seeds(len(sweep.seeds))}"
    table = report.Table(f"{title}, mean {RELATIVE_METRICS[args.metric]}", [row.x_label, "m x k x n", *values], rows)
    if row.sweeps_exponent:
        title += f", m x k x n = {sizes[0]}"
    lines = [Curve(label, sweep.points, curve, _line_style(label)) for label, curve in values.items()]
    axes = {"title": title, "x_label": row.x_label, "y_label": RELATIVE_METRICS[args.metric],
            "log_x": not row.sweeps_exponent, "log_y": True}
    return sweep.to_dict(), table, lines, axes


def _seeds(count: int) -> str:
    return f"{count} seed{'s' * (count > 1)}"


def _line_style(label: str) -> str:
    return "--" if "elementwise" in label else ":" if "FP16" in label else "-"


def _write_figure(args, name, environment_facts, data, table, lines, axes) -> list[str]:
    stem = f"figure_{name}"
    write_text(args.out / f"{stem}.json", report.json_text({"environment": environment_facts, "figure": data}))
    write_text(args.out / f"{stem}.csv", table.to_csv())
    written = [f"{stem}.json", f"{stem}.csv"]
    if not args.no_figures:
        plots.save_figure(plots.curves(lines, **axes), args.out / f"{stem}.png")
        written.append(f"{stem}.png")
    return written
