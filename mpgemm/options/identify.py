"""`mpgemm identify`: what does a matrix unit compute? A black box in, its specification out, with the evidence."""

import argparse

from mpgemm.options.words import EFFORTS, SECONDS_EACH, SECONDS_TOTAL, SOLVERS, SUITES

QUESTION = "look into a unit"
SUMMARY = "what a matrix unit computes: a black box in, its specification out"
EXAMPLES = (
    ("--instruction volta:mma.m8n8k4.f32.f16.f16.f32", "a catalogued unit as a black box"),
    ("--engine cpu:vdpbf16ps --html unit.html", "this machine's own unit; a page to keep"),
    ("--python my_model:dot --a-format bf16 --d-format fp32 --k 8", "a function f(a, b, c) of your own"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    box = parser.add_mutually_exclusive_group(required=True)
    add = box.add_argument
    add("--instruction", metavar="ARCH:NAME", help="a modelled instruction of the catalogue")
    add("--python", metavar="MODULE:FUNCTION", help="f(a, b, c) -> d on arrays (m, k), (k, n), (m, n)")
    add("--engine", metavar="NAME", help="hardware: cuda:..., cpu:..., cpu-emulated:..., torch:...")
    add = parser.add_argument
    for name in "abcd":
        add(f"--{name}-format", metavar="FORMAT", help=f"of {name}, for --python")
    add("--k", type=int, help="products of one call, for --python")
    add("--scale-format", metavar="FORMAT", help="of block scales, for --python with --raw")
    add("--block-size", type=int, help="products that share a scale, for --python with --raw")
    add("--raw", action="store_true", help="the function takes and returns encodings, not values")
    add("--vectors", type=int, default=1_000_000, help="random vectors that must not refute it (%(default)s)")
    add("--seed", type=int, default=0, help="of all random choices")
    add(
        "--effort", choices=EFFORTS, default="normal",
        help="how far to go before a box counts as outside of the families: quick crosses no specifications, thorough takes up "
        "to some three times as long as normal",
    )  # fmt: skip
    add("--quiet", action="store_true", help="no progress on a terminal")
    add("--suite", choices=SUITES, help="run a published suite first")
    add(
        "--solver", nargs="*", choices=SOLVERS, metavar="NAME",
        help=f"ask SMT solvers what no input decided: {', '.join(SOLVERS)}; without names all that are installed",
    )  # fmt: skip
    add("--solver-timeout", type=float, default=SECONDS_EACH, help="seconds for each question (default %(default)s)")
    add("--solver-total", type=float, default=SECONDS_TOTAL, help="seconds for all questions (default %(default)s)")
    add("--json", action="store_true", help="print JSON")
    add("--html", metavar="FILE", help="write a page with all evidence")
