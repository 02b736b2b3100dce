"""`mpgemm compare`: recovery methods times engines times matrices, and the papers' comparisons of methods."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from mpgemm.inputs import matrices
from mpgemm.reporting import plots, report
from mpgemm.commands.run_options import add_output_arguments, check_run, environment, run_resumable
from mpgemm.experiments.comparison import Comparison, ComparisonRecord, resolve_pairs
from mpgemm.exact.errors import RELATIVE_METRICS
from mpgemm.experiments import evaluate as evaluation
from mpgemm.experiments.cases import Case, file_case, generated_cases, shipped_case, with_addend
from mpgemm.experiments.executors import open_executor
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.recovery_methods import pair_method
from mpgemm.inputs.files import write_text
from mpgemm.recovery.methods import list_methods

DEFAULT_METHODS = ("fp16", "markidis", "egemm", "ootomo", "ootomo_inside", "sgemm_cube", "multiword", "ozaki_int8")
DEFAULT_ENGINES = ("a100", "h100")


def _khattak7(accumulation: str | None = None) -> Callable[[Context], Outcome]:
    def run(context: Context) -> Outcome:
        from mpgemm.experiments import khattak7

        return khattak7.run(context, accumulation or khattak7.ACCUMULATION)

    return run


def _rounding_effect(context: Context) -> Outcome:
    from mpgemm.experiments import khattak7

    return khattak7.run_effect(context)


def _valpey5(context: Context) -> Outcome:
    from mpgemm.experiments import valpey5

    return valpey5.run(context)


def _side_by_side(function: str, *arguments, context: Context) -> Outcome:
    from mpgemm.experiments import side_by_side

    return getattr(side_by_side, function)(context, *arguments)


def _sweep(name: str, context: Context) -> Outcome:
    return _side_by_side("run_sweep", name, context=context)


#: name: (what it reproduces, the experiment, seeds).
FIGURES: dict[str, tuple[str, Callable[[Context], Outcome], int]] = {
    "khattak7": ("Khattak and Mikaitis, fig. 7", _khattak7(), 1),
    "khattak7-core": ("the same with all products in one chain through the core", _khattak7("core"), 1),
    **{
        f"xue{name}": (
            f"Xue et al., fig. {name} with Markidis, Ootomo and SGEMM-cube",
            partial(_sweep, name),
            3,
        )
        for name in ("8a", "8b", "9a", "9b", "9c")
    },
    "rz": (
        "error against k of Markidis and Ootomo on V100, A100, H100",
        lambda context: _side_by_side("run_growth", context=context),
        3,
    ),
}
TABLES: dict[str, tuple[str, Callable[[Context], Outcome], int]] = {
    "valpey5": ("Valpey et al., table 5, and a search for more such inputs", _valpey5, 1),
    "xue2": (
        "Xue et al., table 2: measured bits lost against the claims",
        lambda context: _side_by_side("run_table2", context=context),
        3,
    ),
    "rounding-effect": ("fig. 7 of Khattak and Mikaitis: why V100 beats B200, at n = 1e5", _rounding_effect, 3),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    what = parser.add_argument_group("what to compare")
    what.add_argument(
        "--methods",
        nargs="+",
        default=list(DEFAULT_METHODS),
        metavar="NAME",
        help=f"methods, with options as in multiword:words=3,format=bf16 ({', '.join(m.name for m in list_methods())})",
    )
    what.add_argument(
        "--engines",
        nargs="+",
        default=list(DEFAULT_ENGINES),
        metavar="ENGINE",
        help="devices (a100), paths (h100/wgmma), arch:name, ieee, or default (each method's own)",
    )
    what.add_argument(
        "--figure", choices=FIGURES, help="reproduce instead: " + "; ".join(f"{k}: {v[0]}" for k, v in FIGURES.items())
    )
    what.add_argument(
        "--table", choices=TABLES, help="reproduce instead: " + "; ".join(f"{k}: {v[0]}" for k, v in TABLES.items())
    )
    source = parser.add_argument_group("matrices (default: uniform_symmetric and ootomo_type1)")
    source.add_argument("--files", nargs=2, metavar="FILE", help="A and B: .npy, .npz, .mtx or .safetensors")
    source.add_argument("--shipped", nargs="+", metavar="NAME", help=f"shipped pairs: {', '.join(matrices.SHIPPED)}")
    source.add_argument(
        "--distributions", nargs="+", metavar="NAME", help=f"generate: {', '.join(matrices.DISTRIBUTIONS)}"
    )
    source.add_argument(
        "--shape",
        nargs=3,
        type=int,
        action="append",
        metavar=("M", "K", "N"),
        help="sizes of generated matrices; may be given more than once (default 64 256 64)",
    )
    source.add_argument(
        "--c", metavar="FILE|NAME", help="compute A B + C: C from a matrix file, or a distribution (m x n, the same seed)"
    )
    source.add_argument("--seed", type=int, default=0, help="first seed (default 0)")
    source.add_argument("--repeats", type=int, help="number of seeds (default 1; figures and tables: their own)")
    how = parser.add_argument_group("how")
    how.add_argument("--bounds", action="store_true", help="deterministic bounds beside the errors")
    how.add_argument("--strict", action="store_true", help="elements beyond the range of the words are an error")
    how.add_argument(
        "--overflow", choices=("inf", "saturate"), help="what a word that overflows becomes (default: as the engine)"
    )
    how.add_argument("--quick", action="store_true", help="figures and tables: fewer and smaller points")
    how.add_argument(
        "--workers", type=int, default=1, metavar="N", help="measurements side by side, in threads (default 1)"
    )
    how.add_argument(
        "--scheduler", metavar="ADDRESS", help="run on a dask cluster instead, for instance tcp://host:8786"
    )
    output = add_output_arguments(parser)
    output.add_argument(
        "--metric", default="relative_frobenius", choices=RELATIVE_METRICS, help="what the figure shows"
    )
    output.add_argument("--csv", action="store_true", help="print CSV instead of tables")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status."""
    _check(args)
    return run_resumable(args, _run)


def _run(args: argparse.Namespace, journal: Journal) -> int:
    with open_executor(args.workers, args.scheduler) as executor:
        context = Context(journal=journal, progress=report.Progress(sys.stderr), executor=executor, quick=args.quick)
        if args.figure or args.table:
            return _reproduce(args, context)
        return _compare(args, context)


def _check(args: argparse.Namespace) -> None:
    if args.figure and args.table:
        raise ValueError("--figure or --table, not both")
    sources = [f"--{name}" for name in ("files", "shipped", "distributions") if getattr(args, name)]
    if len(sources) > 1 or (sources and (args.figure or args.table)):
        own = ["the matrices of --figure or --table"] if args.figure or args.table else []
        raise ValueError(f"one kind of input at a time, got {' and '.join([*sources, *own])}")
    if args.c and (args.figure or args.table):
        raise ValueError("--c goes with matrices, not with --figure or --table")
    if args.json and args.csv:
        raise ValueError("--json or --csv, not both")
    check_run(args)


# -- methods x engines x matrices ----------------------------------------------------------------------------------------
def _cases(args: argparse.Namespace) -> list[Case]:
    if args.files:
        return [file_case(Path(args.files[0]), Path(args.files[1]))]
    if args.shipped:
        return [shipped_case(name) for name in args.shipped]
    seeds = range(args.seed, args.seed + (args.repeats or 1))
    return [
        case
        for name in args.distributions or ("uniform_symmetric", "ootomo_type1")
        for shape in args.shape or [(64, 256, 64)]
        for case in generated_cases(name, shape, seeds)
    ]


def _compare(args: argparse.Namespace, context: Context) -> int:
    engines = [None if name == "default" else name for name in args.engines]
    pairs, skipped = resolve_pairs(args.methods, engines)
    options = {"strict": args.strict, "overflow": args.overflow}
    methods = {m.name: (pair, m) for pair in pairs for m in [pair_method(pair, bounds=args.bounds, **options)]}
    cases = _cases(args) if args.c is None else [with_addend(case, args.c) for case in _cases(args)]
    records = evaluation.evaluate(
        cases, [m for _, m in methods.values()], context.journal, context.progress, context.executor
    )
    comparison = Comparison((_record(r, methods[r.method][0]) for r in records), skipped)
    if args.json:
        sys.stdout.write(comparison.to_json())
    elif args.csv:
        sys.stdout.write(comparison.to_csv())
    else:
        print(comparison)
        notes = {case.group: case.note for case in cases if case.note}
        print("\n".join(f"{group}: {note}" for group, note in notes.items()))
    if args.out:
        written = _write_comparison(args, comparison)
        if not (args.json or args.csv):
            print(f"\nwritten to {args.out}: {', '.join(written)}")
    return 0


def _record(record: evaluation.Record, pair) -> ComparisonRecord:
    facts = dict(record.details)
    bound = facts.pop("bound")
    return ComparisonRecord(
        case=record.case,
        method=pair.name,
        engine=pair.engine.label,
        errors=record.errors,
        seconds=record.seconds,
        bound=float(bound) if bound is not None else None,
        **facts,
    )


def _write_comparison(args, comparison: Comparison) -> list[str]:
    write_text(args.out / "comparison.json", comparison.to_json())
    write_text(args.out / "comparison.csv", comparison.to_csv())
    written = ["comparison.json", "comparison.csv", "journal.jsonl"]
    if not args.no_figures:
        groups: dict[str, list] = {}
        for record in comparison:
            groups.setdefault(record.case, []).append(
                (f"{record.method}, {record.engine}", getattr(record.errors, args.metric))
            )
        figure = plots.method_errors(groups, "Error of each method", RELATIVE_METRICS[args.metric])
        plots.save_figure(figure, args.out / "comparison.png")
        written.append("comparison.png")
    return written


# -- reproductions -------------------------------------------------------------------------------------------------------
def _reproduce(args: argparse.Namespace, context: Context) -> int:
    _, experiment, repeats = FIGURES[args.figure] if args.figure else TABLES[args.table]
    seeds = tuple(range(args.seed, args.seed + (args.repeats or repeats)))
    outcome = experiment(replace(context, seeds=seeds))
    if args.json:
        sys.stdout.write(report.json_text(outcome.data))
    elif args.csv:
        sys.stdout.write("\n".join(table.to_csv() for table in outcome.tables))
    else:
        for table in outcome.tables:
            table.print()
            print()
        print(*outcome.remarks, sep="\n")
    if args.out:
        _write_outcome(args, outcome)
    return 0


def _write_outcome(args: argparse.Namespace, outcome: Outcome) -> None:
    write_text(args.out / f"{outcome.name}.json", report.json_text({"environment": environment(), **outcome.data}))
    write_text(args.out / f"{outcome.name}.csv", "\n".join(f"# {t.title}\n{t.to_csv()}" for t in outcome.tables))
    if outcome.panels and not args.no_figures:
        plots.save_figure(plots.panel_grid(outcome.panels, outcome.columns), args.out / f"{outcome.name}.png")
    if not (args.json or args.csv):
        print(f"written to {args.out}")
