"""`mpgemm evaluate`: how accurate SGEMM-cube and native GEMMs are on given or generated matrices."""

import argparse

from mpgemm.options.inputs import add_input_arguments
from mpgemm.options.parser import Parser
from mpgemm.options.run_options import add_output_arguments, add_run_arguments
from mpgemm.options.words import NAMED_METHODS, ON_REQUEST, ORDERS, STEP_ORDERS

QUESTION = "evaluate a scheme"
SUMMARY = "accuracy of SGEMM-cube and native GEMMs on files or generated matrices"
EXAMPLES = (
    ("A.npy B.npy", "is SGEMM-cube accurate enough for these matrices?"),
    ("W.safetensors X.npy --a-name layers.0.weight", "a tensor by its name"),
    ("X.npy W.npy --transpose-b", "x @ W.T"),
    ("--distribution normal --shape 64 1024 64 --repeats 3 --out out", "generated, three seeds, files in out"),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add_input_arguments(parser, "the pairs that ship with the package")
    what = parser.add_argument_group("what to compare")
    add_method_arguments(what, "all of these")
    add_cube_arguments(what, "0 6 12 auto", "both")
    add = what.add_argument
    add("--block", metavar="BM,BK,BN", help="block sizes on the 910A (default: all of k in one chain)")
    add(
        "--verify",
        nargs="?",
        const=16,
        type=int,
        metavar="N",
        help="check N sampled entries of the exact product against mpmath (default 16)",
    )
    add("--attention", nargs=3, metavar=("Q", "K", "V"), help="attention of one head instead: three matrix files")
    add("--kv-tile", nargs="+", type=int, metavar="N", help="keys in a tile of FlashAttention (default: all, 64, 128)")
    add_run_arguments(parser)
    add_output_arguments(parser, metric_needs_out=True)
    parser.at_least(1, "--verify")
    parser.goes_with(("--shape", "--precision"), ("--distribution",))
    parser.goes_with(("--kv-tile",), ("--attention",))
    parser.moved("--figure", "mpgemm reproduce xue8a (mpgemm reproduce --list names the others)")


def add_method_arguments(what: argparse._ArgumentGroup, default: str) -> None:
    """Methods and engines."""
    what.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help=f"{', '.join(NAMED_METHODS)} (default {default}); on request {', '.join(ON_REQUEST)}; "
        "recovery methods as METHOD or METHOD@ENGINE; engine:ARCH:INSTRUCTION",
    )
    what.add_argument(
        "--engine",
        "--engines",
        nargs="+",
        action="extend",
        default=[],
        metavar="ENGINE",
        help="add matrix engines: devices (a100: its FP16 instruction) or arch:name",
    )


def add_cube_arguments(what: argparse._ArgumentGroup, scale_exponents: str, step_orders: str) -> None:
    """How SGEMM-cube runs."""
    add = what.add_argument
    add("--orders", nargs="+", choices=ORDERS, help="of SGEMM-cube's terms (elementwise termwise)")
    add(
        "--scale-exponents",
        nargs="+",
        type=_scale_exponent,
        metavar="S_B",
        help=f's_b of SGEMM-cube: integers or "auto" (default {scale_exponents})',
    )
    add(
        "--step-orders",
        nargs="+",
        choices=STEP_ORDERS,
        help="rounding inside a cube step of 16 products, which is not published: sequential, after every product, or exact, "
        f"once a step (default {step_orders})",
    )


def _scale_exponent(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'a scale exponent is an integer or "auto", got {text!r}') from None
