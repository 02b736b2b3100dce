"""`mpgemm evaluate` measures how accurate SGEMM-cube and native GEMMs are on given or generated matrices."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, fields
from itertools import chain
from typing import TYPE_CHECKING

import tensorcore_models as tcm
from mpgemm.cli.common.ascend_options import parse_block
from mpgemm.cli.common.inputs import add_input_arguments, cases_of, check_inputs
from mpgemm.cli.common.option_values import NAMED_METHODS, ON_REQUEST, ORDERS, STEP_ORDERS
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.run_options import (
    add_output_arguments,
    add_run_arguments,
    check_run,
    metric_of,
    run_resumable,
    written_to,
)
from mpgemm.reporting import report
from mpgemm.reporting.output import Output
from tensorcore_models.files import write_text

if TYPE_CHECKING:
    import numpy as np

    from mpgemm.experiments import evaluate as evaluation
    from mpgemm.experiments.cases import Case
    from mpgemm.experiments.methods import CubeOptions
    from mpgemm.experiments.operand_ranges import MatrixRange
    from mpgemm.experiments.outcome import Context
    from mpgemm.experiments.stacks import StackVerdict
    from mpgemm.experiments.verdict import Verdict

QUESTION = "evaluate a scheme"
SUMMARY = "measure the accuracy of SGEMM-cube and native GEMMs on files or generated matrices"
EXAMPLES = (
    ("A.npy B.npy", "is SGEMM-cube accurate enough for these matrices?"),
    ("W.safetensors X.npy --a-name layers.0.weight", "A is the tensor of this name in its file"),
    ("X.npy W.npy --transpose-b", "the product x @ W.T of a file of x and a file of W"),
    (
        "--distribution normal --shape 64 1024 64 --repeats 3 --out out",
        "generated matrices of three seeds; results are written into out/",
    ),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add_input_arguments(parser, "the pairs that ship with the package")
    what = parser.add_argument_group("what to compare")
    add_method_arguments(what, "all of these")
    add_cube_arguments(what, "0 6 12 auto", "sequential and exact; the verdict uses sequential")
    add = what.add_argument
    add(
        "--block", metavar="BM,BK,BN",
        help="sizes in elements of SGEMM-cube's blocks on the 910A, which determine where its chains along k end "
        "(default: all of k in one chain)",
    )  # fmt: skip
    add(
        "--verify", nargs="?", const=16, type=int, metavar="N",
        help="compute N sampled elements of the exact product again with mpmath and compare them (N: default 16; without "
        "--verify none)",
    )  # fmt: skip
    add(
        "--attention", nargs=3, metavar=("Q", "K", "V"),
        help="evaluate the attention of one head in place of A B, from matrix files of Q, K and V, on the devices of "
        "--engine (default h100 a100)",
    )  # fmt: skip
    add(
        "--kv-tile", nargs="+", type=int, metavar="N",
        help="numbers of keys in a tile of FlashAttention, each evaluated by itself (default: all keys; also 64 and 128 "
        "if there are more keys)",
    )  # fmt: skip
    add(
        "--functions", metavar="ARCH",
        help="device or architecture of the GPU, whose special-function unit's 2^x and 1/x are computed bit for bit "
        "(default: correctly rounded FP32 values)",
    )  # fmt: skip
    add(
        "--attention-kernel", choices=("plain", "triton"),
        help="attention kernel that is reproduced: plain computes each row sum of the softmax from left to right; triton "
        "sums each row, and rounds the arguments of exp, in the way of Triton's kernels (default plain)",
    )  # fmt: skip
    add_run_arguments(parser)
    add_output_arguments(parser, metric_needs_out=True)
    parser.at_least(1, "--verify")
    parser.goes_with(("--shape", "--precision"), ("--distribution",))
    parser.goes_with(("--kv-tile", "--functions", "--attention-kernel"), ("--attention",))
    parser.moved("--figure", "mpgemm reproduce xue8a (mpgemm reproduce --list names the others)")


def add_method_arguments(what: argparse._ArgumentGroup, default: str) -> None:
    """Add the options that choose methods and engines."""
    what.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help=f"methods to evaluate: {', '.join(NAMED_METHODS)} (default {default}). On request also "
        f"{', '.join(ON_REQUEST)}, recovery methods as METHOD or METHOD@ENGINE, and engines as "
        "engine:ARCH:INSTRUCTION",
    )
    what.add_argument(
        "--engine",
        "--engines",
        nargs="+",
        action="extend",
        default=[],
        metavar="ENGINE",
        help="evaluate these matrix engines as well: a device (a100 stands for its FP16 instruction) or an "
        "instruction (arch:name)",
    )


def add_cube_arguments(what: argparse._ArgumentGroup, scale_exponents: str, step_orders: str) -> None:
    """Add the options that say how SGEMM-cube runs."""
    add = what.add_argument
    add(
        "--orders", nargs="+", choices=ORDERS,
        help="orders in which SGEMM-cube adds its terms: elementwise (all terms in one sum), termwise (one sum for each "
        "term, added at the end), termwise_inplace (one term after the other into C); default elementwise termwise",
    )  # fmt: skip
    add(
        "--scale-exponents", nargs="+", type=_scale_exponent, metavar="S_B",
        help="exponents s_b: SGEMM-cube multiplies the second word of each operand by 2^s_b. Integers, or auto for an "
        f"exponent that follows from the operand's elements (default {scale_exponents})",
    )  # fmt: skip
    add(
        "--step-orders", nargs="+", choices=STEP_ORDERS,
        help="where the cube rounds inside a step of 16 products (no measurement of it is published): sequential rounds "
        "after every product, as PTO-ISA states; pairwise rounds every sum of a binary tree; exact rounds once, at the end "
        f"of the step, which fits figure 9 of the SGEMM-cube paper (default {step_orders})",
    )  # fmt: skip


def _scale_exponent(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'got {text!r}, expected an integer or "auto"') from None


#: Metrics of the table, the most important first; a narrow terminal shows fewer, and leaves out the last ones.
METRICS = ("effective_bits", "relative_frobenius", "componentwise", "grade")
MORE_METRICS = ("bits_equal", "relative_inf", "rowwise", "normwise", "mean_ulp", "max_ulp")

#: Number of cases after which a table of the finished cases is written.
AT_A_TIME = 32
#: Explanation of terms that follows the first verdict on a screen.
VERDICT_WORDS = "(bits: correct leading bits of a result; step: 16 products that a cube adds at once)"
#: Sentence in place of a verdict.
NO_VERDICT = "No verdict, because it needs results of the methods fp32 and sgemm_cube, and a product that is not empty."


def run(args: argparse.Namespace) -> Output:
    """Carry out the command."""
    check_attention(args)
    if args.attention:
        return evaluate_attention(args)
    check_inputs(args)
    check_run(args)
    return run_resumable(args, _run_cases)


def _run_cases(args: argparse.Namespace, context: Context) -> Output:
    from mpgemm.experiments import evaluate as evaluation
    from mpgemm.experiments.cases import shipped_case
    from mpgemm.experiments.methods import build_methods
    from mpgemm.inputs import matrices

    cases = cases_of(args, [shipped_case(name) for name in matrices.SHIPPED])
    names = [*(args.methods or NAMED_METHODS), *(f"engine:{name}" for name in args.engine)]
    options = _cube_options(args)
    if "amx" in names:
        names = _that_run(names)
    if args.c is not None and not args.methods:
        names = _that_add(names, options)
    methods = build_methods(names, options)
    records = _measured(args, cases, methods, context)
    summaries = evaluation.summarise(records)
    inputs = [InputFindings(group, methods, records, options.scale_exponents) for group in _groups(cases)]
    checks = [(case, *evaluation.verify_entries(case, args.verify)) for case in cases] if args.verify else []
    result: dict = {
        "inputs": [entry.to_dict() for entry in inputs],
        "summaries": [asdict(summary) for summary in summaries],
        "records": [record.to_dict() for record in records],
        "verified": [{"case": case.label, "checked": n, "agreeing": good} for case, n, good in checks],
    }
    table = _table(summaries)
    if args.out:
        result["written"] = _write_cases(args, result, table, inputs, summaries)
    text = chain(
        _case_lines(inputs, summaries, checks), map(report.fitted, _record_lines(records)),
        written_to(args, sorted(result.get("written", ()))),
    )  # fmt: skip
    wrong = [case.label for case, n, good in checks if good != n]
    remark = f"mpgemm evaluate: the exact product disagrees with mpmath on {', '.join(wrong)}" if wrong else ""
    return Output(result, text, [table], int(bool(wrong)), remark)


def _record_lines(records: list[evaluation.Record]) -> Iterator[str]:
    from mpgemm.experiments.evaluate import not_held

    yield from dict.fromkeys(f"{r.case}: {r.details['count']}." for r in records if r.details.get("count"))
    yield from not_held((r.group, r.label, r.errors, r.held) for r in records)
    for record in records:
        if record.method == "amx" and record.details["path"] == "numpy":
            yield f"{record.case}: NumPy computed {record.label} here: {record.details['reason']}"


def _that_run(names: list[str]) -> list[str]:
    """Return the names without amx if this machine cannot run it, and print the reason."""
    from mpgemm.amx import USUAL, unit_missing

    missing = unit_missing(USUAL)
    if missing:
        print(f"mpgemm evaluate: amx is left out: {missing}", file=sys.stderr)
    return [name for name in names if name != "amx" or not missing]


def _measured(args: argparse.Namespace, cases: list[Case], methods: list, context: Context) -> list[evaluation.Record]:
    """Measure all cases and return the records; of many cases, a table of the finished ones is written into --out meanwhile."""
    from mpgemm.experiments import evaluate as evaluation

    records: list[evaluation.Record] = []
    for start in range(0, len(cases), AT_A_TIME):

        def progress(done: int, total: int, label: str, before: int = len(records)) -> None:
            if context.progress is not None:
                context.progress(before + done, len(cases) * len(methods), label)

        part = cases[start : start + AT_A_TIME]
        records += evaluation.evaluate(part, methods, context.journal, progress, context.executor)
        if args.out and len(cases) > AT_A_TIME:
            write_text(args.out / "results.csv", _table(evaluation.summarise(records)).to_csv())
    return records


def _table(summaries: list[evaluation.Summary]) -> report.Table:
    from mpgemm.experiments import evaluate as evaluation

    return report.Table("", [field.name for field in fields(evaluation.Summary)], [astuple(s) for s in summaries])


def _that_add(names: list[str], options: CubeOptions) -> list[str]:
    """Return the names without the default methods that cannot add C, and print these; methods named by the user stay."""
    from mpgemm.experiments.methods import build_methods

    left_out = [
        name
        for name in names
        if name in NAMED_METHODS and not all(m.takes_addend for m in build_methods([name], options))
    ]
    print(f"mpgemm evaluate: left out, because they cannot add C: {', '.join(left_out)}", file=sys.stderr)
    return [name for name in names if name not in left_out]


class InputFindings:
    """`InputFindings` holds the findings on one input besides its errors: the range of its operands, and the verdict.

    Of several seeds only the first is examined; of a stack of matrices, all members are.
    """

    def __init__(self, cases: list[Case], methods: list, records: list, scale_exponents: Sequence[int | str]):
        from mpgemm.experiments.cases import as_fp32
        from mpgemm.experiments.fp64_judging import judge_fp64
        from mpgemm.experiments.judging import judge
        from mpgemm.experiments.not_finite import not_finite
        from mpgemm.experiments.operand_ranges import matrix_range

        case = cases[0]
        self.members = 1 if "seed" in case.identity else len(cases)
        fixed = [scale for scale in scale_exponents if isinstance(scale, int)]
        self.case = case
        a, b = case.load()
        together = zip("AB", _together(cases[: self.members]), strict=True)
        self.operands = [matrix_range(name, as_fp32(x), fixed) for name, x in together]
        self.verdict: Verdict | StackVerdict | None
        if self.members == 1:
            self.verdict = judge(case, methods, records)
        else:
            from mpgemm.experiments.stacks import judge_stack

            self.verdict = judge_stack(cases, methods, records)
        self.fp64 = judge_fp64(case.group, records, len(a) * b.shape[1], pairs=self.members > 1)
        if self.fp64 and self.verdict is None and (beyond := not_finite(case)).results:
            self.fp64 = [f"{beyond} The next lines are about the other elements.", *self.fp64]

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {
            "case": self.case.label if self.members == 1 else self.case.group,
            "identity": dict(self.case.identity) if self.members == 1 else {"members": self.members},
            "note": self.case.note,
            "operands": [asdict(operand) for operand in self.operands],
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
            "fp64": self.fp64,
        }


def _cube_options(args: argparse.Namespace) -> CubeOptions:
    from mpgemm.experiments.judging import BOTH_STEP_ORDERS
    from mpgemm.experiments.methods import DEFAULT_SCALE_EXPONENTS, CubeOptions

    return CubeOptions(
        tuple(args.orders or ("elementwise", "termwise")),
        tuple(args.scale_exponents or DEFAULT_SCALE_EXPONENTS),
        tuple(args.step_orders or BOTH_STEP_ORDERS),
        parse_block(args.block) if args.block else None,
    )


def _groups(cases: list[Case]) -> list[list[Case]]:
    """Return one list of cases for each group."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.group, []).append(case)
    return list(found.values())


def _together(cases: list[Case]) -> list[np.ndarray]:
    """Return all rows of A and of B over the cases; a matrix that several cases share appears once."""
    import numpy as np

    pairs = [case.load() for case in cases]
    return [np.concatenate(list({id(pair[side]): pair[side] for pair in pairs}.values())) for side in (0, 1)]


def _case_lines(inputs: list[InputFindings], summaries: list, checks: list) -> Iterator[str | report.Table]:
    """Yield the verdicts, then the tables that they rest on."""
    said = False
    for number, entry in enumerate(inputs):
        if len(inputs) > 1:
            yield report.fitted("\n" * bool(number) + entry.case.group)
        yield from map(report.fitted, [*([str(entry.verdict)] if entry.verdict else []), *entry.fp64] or [NO_VERDICT])
        if entry.verdict and not said:
            yield report.fitted(f"  {VERDICT_WORDS}")
            said = True
    for entry in inputs:
        members = [summary for summary in summaries if summary.group == entry.case.group]
        yield ""
        yield accuracy_table(entry.case.group, members, "seeds" if entry.members == 1 else "pairs")
        if entry.case.note:
            yield report.fitted(f"Input: {entry.case.note}")
        yield ""
        yield range_table(entry.operands)
    if checks:
        yield ""
    for case, count, agreeing in checks:
        yield report.fitted(
            f"{case.label}: {agreeing} of {count} sampled entries of the exact product agree with mpmath"
        )


def accuracy_table(group: str, summaries: list[evaluation.Summary], several: str = "seeds") -> report.Table:
    """Return a table of the methods' errors on one input, with a column for each way in which a cube step may round.

    several: Noun for its products: seeds, or members of a stack.
    """
    seeds = max((summary.count for summary in summaries), default=1)
    title = group + (
        f", {seeds} {several}: median (smallest to largest) of the bits, means of the rest" if seeds > 1 else ""
    )
    steps = list(dict.fromkeys(s.step_order for s in summaries if s.step_order)) or [""]
    by_label: dict[str, dict[str, evaluation.Summary]] = {}
    for summary in summaries:
        by_label.setdefault(summary.label, {})[summary.step_order] = summary
    columns = [(metric, step) for metrics in (METRICS, MORE_METRICS) for metric in metrics for step in steps]
    rows = [
        [label, *(_cell(found.get(s, found.get("")), m) for m, s in columns), next(iter(found.values())).format]
        for label, found in by_label.items()
    ]
    headings = ["label", *(f"{metric} {step}" if len(steps) > 1 else metric for metric, step in columns), "format"]
    if any(s.method == "amx" for s in summaries):  # only amx runs on a real unit; other times are those of models
        headings.append("seconds")
        rows = [[*row, next(iter(by_label[row[0]].values())).seconds] for row in rows]
    return report.Table(title, headings, rows, silent=True)


def _cell(summary: evaluation.Summary | None, metric: str):
    """Return a metric's value as the table shows it."""
    if metric == "effective_bits" and summary is not None and summary.count > 1:
        return summary.bits.text()
    return getattr(summary, metric)


def range_table(operands: Sequence[MatrixRange]) -> report.Table:
    """Return a table of both operands' range and kept bits; a count that is 0 everywhere has a column with --wide only."""
    rows = []
    for operand in operands:
        exponents = f"{operand.smallest_exponent} to {operand.largest_exponent}" if operand.histogram else "-"
        for kept in operand.choices:
            bits = ["-" if x is None else f"{x:.1f}" for x in (kept.fewest_bits, kept.mean_bits)]
            auto = " (auto)" if kept.scale_exponent == operand.auto else ""
            scale = f"{kept.scale_exponent}{auto}"
            counts = [operand.zeros, operand.overflow, operand.vanishing, operand.subnormal]
            rows.append([operand.name, exponents, scale, *bits, kept.below_22_bits, *counts])
            exponents = ""
    headings = ["operand", "exponents", "s_b", "fewest_bits", "mean_bits", "below_22_bits"]
    named: tuple[str, ...] = ("zeros", "overflow", "vanishing", "subnormal")
    if report.shown_width() is not None:  # only --wide shows counts that are 0 everywhere
        told = [number for number, name in enumerate(named) if any(getattr(operand, name) for operand in operands)]
        rows = [[*row[: len(headings)], *(row[len(headings) + number] for number in told)] for row in rows]
        named = tuple(named[number] for number in told)
    title = "Range of the operands in fp16, and bits kept by two fp16 words, the second scaled by 2^s_b"
    return report.Table(title, [*headings, *named], rows)


def figure_label(summary: evaluation.Summary, summaries: Sequence[evaluation.Summary]) -> str:
    """Return a method's label in figures, with its step order if the methods have different ones."""
    several = len({s.step_order for s in summaries if s.step_order}) > 1
    return f"{summary.label}, {summary.step_order}" if several and summary.step_order else summary.label


def _write_cases(args, result, table, inputs, summaries) -> list[str]:
    from mpgemm.exact.errors import RELATIVE_METRICS
    from mpgemm.reporting import plots
    from tensorcore_models.figures import save

    write_text(args.out / "results.json", report.json_text(result))
    write_text(args.out / "results.csv", table.to_csv())
    written = ["results.json", "results.csv", "journal.jsonl"]
    if args.no_figures:
        return written
    groups = {
        case.group: [
            (figure_label(s, summaries), getattr(s, metric_of(args))) for s in summaries if s.group == case.group
        ]
        for case in (entry.case for entry in inputs)
    }
    figure = plots.method_errors(groups, "Error of each method", RELATIVE_METRICS[metric_of(args)])
    written += save(figure, args.out / "errors.png")
    for number, entry in enumerate(inputs, 1):
        name = f"exponents_{number}.png" if len(inputs) > 1 else "exponents.png"
        histograms = {operand.name: operand.histogram for operand in entry.operands}
        written += save(plots.exponent_histogram(histograms, entry.case.group), args.out / name)
    return written


# -- attention ---------------------------------------------------------------------------------------------------------------
ROUNDED = (
    "2^x is the correctly rounded FP32 value and not that of a GPU's MUFU.EX2, which --functions computes; so only the "
    "products' bits are claimed."
)
COMPUTED = {
    "plain": "2^x and 1 / x have the bits of {}'s special-function unit; row sums are added from the left, but kernels have "
    "orders of their own (--attention-kernel).",
    "triton": "2^x and 1 / x have the bits of {}'s special-function unit; row sums are added in the order of Triton's kernels "
    "in which a warp holds whole rows.",
}


def check_attention(args: argparse.Namespace) -> None:
    """Refuse options that contradict --attention, with a ValueError that names them."""
    others = ("files", "shipped", "distribution", "methods", "c", "shape")
    given = [name for name in others if args.attention and getattr(args, name, None)]
    if given:
        shown = ", ".join(f"--{name}" for name in given)
        raise ValueError(
            f"--attention evaluates one head on its own matrices, got {shown}, which it would ignore: leave {shown} out"
        )


def evaluate_attention(args: argparse.Namespace) -> Output:
    """Carry out `mpgemm evaluate --attention`."""
    from mpgemm.experiments.attention import attention_errors, table
    from mpgemm.frameworks.multiplier import Multiplier
    from mpgemm.inputs.files import read_matrix
    from mpgemm.reporting.provenance import environment

    q, k, v = (read_matrix(path) for path in args.attention)
    formats = {fmt.name for fmt in (tcm.format_of_dtype(x.dtype) for x in (q, k, v)) if fmt is not None}
    fmt = formats.pop() if len(formats) == 1 and formats <= {"fp16", "bf16"} else "bf16"
    engines = [Multiplier(name).engine_for(fmt, fmt) for name in args.engine or ["h100", "a100"]]
    keys = k.shape[0]
    tiles = args.kv_tile or [keys, *(size for size in (64, 128) if size < keys)]
    options = {"functions": args.functions, "kernel": args.attention_kernel or "plain"}
    found = [attention_errors(q, k, v, engine, tile=tile, **options) for engine in engines for tile in tiles]
    note = COMPUTED[options["kernel"]].format(args.functions) if args.functions else ROUNDED
    shape = f"{q.shape[0]} queries, {keys} keys, d {q.shape[1]}, dv {v.shape[1]}"
    shown = table(found, shape)
    data = {"environment": environment(), "shape": shape, "attention": [each.to_dict() for each in found], "note": note}
    if args.out:
        write_text(args.out / "attention.json", report.json_text(data))
        write_text(args.out / "attention.csv", shown.to_csv())
    return Output(data, [shown, report.fitted(note)], [shown])
