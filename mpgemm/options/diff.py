"""`mpgemm diff`: are two results of one product explained by recipes of their GPUs, and where and why do they part?"""

from mpgemm.options import library_options
from mpgemm.options.parser import Parser


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    for name, text in (("a", "A"), ("b", "B"), ("c1", "the first GPU's result"), ("c2", "the second GPU's result")):
        parser.add_argument(name, metavar=name.upper(), help=f"matrix file: {text}")
    parser.add_argument("--gpus", nargs=2, required=True, metavar="GPU", help="the two devices")
    parser.add_argument("--libraries", nargs=2, metavar="NAME[-VERSION]",
                        help="as --library of predict, for each; default: one chain and split-k are tried")  # fmt: skip
    parser.add_argument(
        "--configs", nargs=2, default=["", ""], metavar="FIELD=VALUE,...", help="as --config of predict, for each"
    )
    library_options.add_format_arguments(parser, "that of C1's array, else that of A; fp8: bf16")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.goes_with(("--configs",), ("--libraries",))
