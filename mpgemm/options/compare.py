"""`mpgemm compare`: recovery methods times engines times matrices."""

from mpgemm.options.inputs import add_input_arguments
from mpgemm.options.parser import Parser
from mpgemm.options.run_options import add_output_arguments, add_run_arguments

QUESTION = "compare corrections"
SUMMARY = "recovery methods times matrix engines: errors, bits, passes, bounds"
EXAMPLES = (
    ("A.npy B.npy --engines a100 h100", "the cheapest method that reaches FP32 on each engine"),
    ("A.npy B.npy --methods 3xTF32 bf16x9 ootomo --bits 20", "or at least 20 bits; names of the frameworks will do"),
    ("--methods markidis ootomo --engines h100 --distribution normal --shape 32 4096 32 --bounds", ""),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    from mpgemm.experiments.framework_names import FRAMEWORK_NAMES  # their names are in the help of this command alone
    from mpgemm.recovery.methods import list_methods

    what = parser.add_argument_group("what to compare")
    add = what.add_argument
    add(
        "--methods",
        nargs="+",
        metavar="NAME",
        help=f"methods, with options as in multiword:words=3,format=bf16 ({', '.join(m.name for m in list_methods())}), "
        f"or names of frameworks ({', '.join(row.name for row in FRAMEWORK_NAMES.values())})",
    )
    add(
        "--engine",
        "--engines",
        dest="engines",
        nargs="+",
        action="extend",
        metavar="ENGINE",
        help="devices (a100), paths (h100/wgmma), arch:name, ieee, or default (each method's own)",
    )
    add("--bits", type=float, metavar="N", help="also recommend the cheapest method with at least N bits")
    add(
        "--rates", nargs="+", default=[], metavar="ENGINE=TFLOPS",
        help="peak rates of engines that no data sheet names, or others than the data sheet's",
    )  # fmt: skip
    add("--bounds", action="store_true", help="deterministic bounds beside the errors")
    add("--strict", action="store_true", help="elements beyond the range of the words are an error")
    add("--overflow", choices=("inf", "saturate"), help="what a word that overflows becomes (default: as the engine)")
    add_input_arguments(parser, "uniform_symmetric and ootomo_type1, 64 256 64")
    add_run_arguments(parser)
    add_output_arguments(parser, metric_needs_out=True)
    for option in ("--figure", "--table", "--quick"):
        parser.moved(option, "mpgemm reproduce khattak7 (mpgemm reproduce --list names the others)")
