"""`mpgemm diff` finds whether recipes of two GPUs explain their results of one product, and where and why these differ."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import tensorcore_models as tcm
from mpgemm.cli.common import library_options as options
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.profile_options import BESIDE, add_profile_arguments
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted

if TYPE_CHECKING:
    from tensorcore_models.libraries import Recipe

QUESTION = "debug a kernel"
SUMMARY = "find where and why two GPUs' results of one product differ"
EXAMPLES = (
    ("A.npy B.npy C1.npy C2.npy --gpus a100 h100 --operands fp16", "where and why do two GPUs' results differ?"),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    for name, text in (("a", "A"), ("b", "B"), ("c1", "the first GPU's result"), ("c2", "the second GPU's result")):
        add(name, metavar=name.upper(), help=f"matrix file of {text}")
    add("--gpus", nargs=2, required=True, metavar="GPU", help="the devices that computed C1 and C2")
    add("--libraries", nargs=2, metavar="NAME[-VERSION]",
                        help="library whose kernel ran on each device, named as for predict --library (default: "
                        "one chain over k and several numbers of split-K slices are tried)")  # fmt: skip
    add(
        "--configs",
        nargs=2,
        default=["", ""],
        metavar="FIELD=VALUE,...",
        help="configuration of each device's library, written as for predict --config; an empty word for a "
        "library without one",
    )
    parser.takes_empty = frozenset({"configs"})  # a library without configuration gets an empty word
    add_profile_arguments(parser, nargs=2)
    parser.goes_with(BESIDE, ("--profiles",))
    parser.goes_without(("--libraries",), ("--profiles",))
    options.add_format_arguments(parser, "that of C1's array, else that of A; fp8: bf16")
    add("--json", action="store_true", help="print the result as JSON")
    parser.goes_with(("--configs",), ("--libraries",))


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError, OSError on bad input."""
    from mpgemm.inputs.files import read_matrix
    from tensorcore_models.formats.interop import format_of_dtype

    if args.out_format is None:
        held = format_of_dtype(read_matrix(args.c1).dtype)
        args.out_format = held.name if held else None
    a, b, fmt, out_format = options.read_operands(args, library_rounds=_rounds(args))
    shape = (a.shape[0], b.shape[1])
    results = []
    for path in (args.c1, args.c2):
        bits, name = options.read_operand(path, out_format, None)
        if bits.shape != shape:
            raise ValueError(
                f"{path} is {bits.shape}, expected {shape} from A {a.shape} and B {b.shape}: check the files' order"
            )
        results.append(bits)
    explained = [_explain(args, index, a, b, fmt, out_format, results[index]) for index in (0, 1)]
    facts = _facts(args, a, b, out_format, results, explained)
    return Output(facts, map(fitted, _lines(facts)))


def _explain(args, index: int, a, b, fmt: str, out_format: str, bits) -> tuple[Recipe, int, list[str]]:
    """Return the first recipe that agrees with most elements, their number, and all other recipes that agree with all."""
    from tensorcore_models.libraries.compare import candidates
    from tensorcore_models.libraries.recorded import Problem

    gpu = args.gpus[index]
    sizes = m, k, n = a.shape[0], a.shape[1], b.shape[1]
    if args.profiles is not None:
        from mpgemm.cli.common.profile_options import profiled

        found = profiled(args.profiles[index], gpu, sizes, args, formats=(None, out_format))
        recipes = [product.recipe for _, product in found if product.profile.formats[0] == fmt]
        if not recipes:
            raise ValueError(
                f"{args.profiles[index]} has no row of m {m}, k {k}, n {n} with {fmt} operands: name another "
                "format with --operands"
            )
    elif args.libraries is not None:
        config = options.parse_config([args.configs[index]])
        recipes = [options.make_recipe(gpu, args.libraries[index], config, Problem(fmt, out_format, k, n, m))]
    else:
        recipes = list(candidates(gpu, a.shape[1], fmt))
        if not recipes:
            raise ValueError(
                f"{gpu} has no unit for {fmt} with fp32 sums: name another format with --operands, or give --libraries"
            )
    agreed = [int((recipe.gemm_bits(a, b, out_format=out_format) == bits).sum()) for recipe in recipes]
    best = agreed.index(max(agreed))
    others = [f"{r.name} on {r.engine.label}" for i, r in enumerate(recipes) if i != best and agreed[i] == bits.size]
    return recipes[best], agreed[best], others


def _rounds(args) -> bool:
    """Return whether both sides' libraries round FP32 operands to TF32 by themselves."""
    if args.profiles is not None:
        return True
    named = zip(args.gpus, args.libraries or (None, None), strict=True)
    return all(options.rounds_operands(gpu, library) for gpu, library in named)


def _facts(args, a, b, out_format, results, explained) -> dict:
    import numpy as np

    from tensorcore_models.formats.operands import values_of_bits
    from tensorcore_models.libraries.compare import differences, divergence

    size = results[0].size
    sides = [
        {
            "gpu": gpu, "recipe": recipe.name, "engine": recipe.engine.label, "agree": agreed, "of": size,
            "explained": agreed == size, "also": others,
        }
        for gpu, (recipe, agreed, others) in zip(args.gpus, explained, strict=True)
    ]  # fmt: skip
    unequal = np.argwhere(results[0] != results[1])
    facts: dict = {"sides": sides, "differ": len(unequal), "of": size, "first": None, "why": [], "part_at": None}
    if not len(unequal):
        return facts
    i, j = (int(x) for x in unequal[0])
    values = [float(values_of_bits(bits[i : i + 1, j : j + 1], tcm.get_format(out_format))[0, 0]) for bits in results]
    facts["first"] = {"row": i, "column": j, "values": values, "encodings": [int(bits[i, j]) for bits in results]}
    if all(side["explained"] for side in sides):
        first, second = explained[0][0], explained[1][0]
        facts["why"] = differences(first, second)
        point = divergence(first, second, a[i : i + 1], b[:, j : j + 1], out_format)
        facts["part_at"] = None if point is None else {"k": point.k, "sums": [point.first, point.second]}
    return facts


def _lines(facts):
    for side in facts["sides"]:
        verdict = "explained" if side["explained"] else "NOT explained"
        yield (
            f"{side['gpu']}: {verdict}: {side['agree']} of {side['of']} elements agree with {side['recipe']} on "
            f"{side['engine']}"
        )
        if side["also"]:
            yield (
                f"  {len(side['also'])} other recipes agree as well, such as {side['also'][0]}: this result does not "
                "distinguish them"
            )
    if not facts["differ"]:
        yield f"the results are the same in all {facts['of']} elements"
        return
    first = facts["first"]
    values = " and ".join(f"{v:.9g} ({e:#x})" for v, e in zip(first["values"], first["encodings"], strict=True))
    yield (
        f"the results differ in {facts['differ']} of {facts['of']} elements; the first, row {first['row']} "
        f"column {first['column']}: {values}"
    )
    for reason in facts["why"]:
        yield f"why: {reason}"
    if facts["part_at"]:
        sums = facts["part_at"]["sums"]
        yield f"the sums differ after the first {facts['part_at']['k']} products: {sums[0]:.9g} and {sums[1]:.9g}"
    if not all(side["explained"] for side in facts["sides"]):
        yield "a result that is not explained came from another kernel or input; --libraries and --configs name a kernel"
