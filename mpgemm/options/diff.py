"""`mpgemm diff`: are two results of one product explained by recipes of their GPUs, and where and why do they part?"""

from mpgemm.options import library_options
from mpgemm.options.parser import Parser

QUESTION = "debug a kernel"
SUMMARY = "two GPUs' results of one product: explained by their recipes? where and why do they part?"
EXAMPLES = (("A.npy B.npy C1.npy C2.npy --gpus a100 h100 --format fp16", "where and why do two GPUs' results differ?"),)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add = parser.add_argument
    for name, text in (("a", "A"), ("b", "B"), ("c1", "the first GPU's result"), ("c2", "the second GPU's result")):
        add(name, metavar=name.upper(), help=f"matrix file: {text}")
    add("--gpus", nargs=2, required=True, metavar="GPU", help="the two devices")
    add("--libraries", nargs=2, metavar="NAME[-VERSION]",
                        help="as --library of predict, for each; default: one chain and split-k are tried")  # fmt: skip
    add("--configs", nargs=2, default=["", ""], metavar="FIELD=VALUE,...", help="as --config of predict, for each")
    library_options.add_format_arguments(parser, "that of C1's array, else that of A; fp8: bf16")
    add("--json", action="store_true", help="print JSON")
    parser.goes_with(("--configs",), ("--libraries",))
