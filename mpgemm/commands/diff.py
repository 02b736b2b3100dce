"""`mpgemm diff`: are two results of one product explained by recipes of their GPUs, and where and why do they part?"""

import argparse

import numpy as np

import tensorcore_models as tcm
from mpgemm.commands import library_options as options
from mpgemm.inputs.files import read_matrix
from mpgemm.reporting import report
from tensorcore_models.formats.interop import format_of_dtype
from tensorcore_models.formats.operands import values_of_bits
from tensorcore_models.libraries import Recipe
from tensorcore_models.libraries.compare import candidates, differences, divergence


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status. Raises ValueError, TypeError, OSError on bad input."""
    if args.out_format is None:
        held = format_of_dtype(read_matrix(args.c1).dtype)
        args.out_format = held.name if held else None
    a, b, fmt, out_format = options.read_operands(args)
    shape = (a.shape[0], b.shape[1])
    results = []
    for path in (args.c1, args.c2):
        bits, name = options.read_operand(path, out_format, None)
        if bits.shape != shape:
            raise ValueError(f"{path} is {bits.shape}, expected {shape} from A {a.shape} and B {b.shape}")
        results.append(bits)
    explained = [_explain(args, index, a, b, fmt, out_format, results[index]) for index in (0, 1)]
    facts = _facts(args, a, b, out_format, results, explained)
    if args.json:
        print(report.json_text(facts), end="")
    else:
        report.say("\n".join(_lines(facts)))
    return 0


def _explain(args, index: int, a, b, fmt: str, out_format: str, bits) -> tuple[Recipe, int, list[str]]:
    """The first recipe that agrees with most elements, with how many, and all others that agree with every one: none is
    picked."""
    gpu = args.gpus[index]
    if args.libraries is not None:
        config = options.parse_config([args.configs[index]])
        sizes = a.shape[0], a.shape[1], b.shape[1]
        recipes = [options.make_recipe(gpu, args.libraries[index], config, None, *sizes, fmt, out_format)]
    else:
        recipes = list(candidates(gpu, a.shape[1], fmt))
        if not recipes:
            raise ValueError(f"{gpu} has no unit for {fmt} with fp32 sums; name another --format, or --libraries")
    agreed = [int((recipe.gemm_bits(a, b, out_format=out_format) == bits).sum()) for recipe in recipes]
    best = agreed.index(max(agreed))
    others = [f"{r.name} on {r.engine.label}" for i, r in enumerate(recipes) if i != best and agreed[i] == bits.size]
    return recipes[best], agreed[best], others


def _facts(args, a, b, out_format, results, explained) -> dict:
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
                f"  as do {len(side['also'])} other recipes that were tried, such as {side['also'][0]}: this result "
                "does not tell them apart"
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
        yield f"there the sums part within the first {facts['part_at']['k']} products: {sums[0]:.9g} and {sums[1]:.9g}"
    if not all(side["explained"] for side in facts["sides"]):
        yield "another kernel, or another input, computed what is not explained: name what ran with --libraries and --configs"
