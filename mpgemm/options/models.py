"""`mpgemm models`: the catalogue of matrix engines and recovery methods; an instruction in words, formula and picture."""

from mpgemm.options.parser import Parser

QUESTION = "look into a unit"
SUMMARY = "the catalogue of matrix engines and recovery methods"
EXAMPLES = (
    ("h100", "the instructions of a device"),
    ("H100 fp8", "those for one format"),
    ("hopper:mma.m16n8k16.f32.f16.f16.f32", "one of them in words, a formula and a picture"),
    ("HMMA.16816.F32", "by its name in SASS, PTX or AMD's compiler"),
    ("--methods", "the recovery methods"),
)


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add = parser.add_argument
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="device, architecture, operand format, or an instruction as the catalogue, PTX, SASS or AMD's compiler spell "
        "it, in any case; several must all fit. Few enough instructions are explained, others listed",
    )
    add("--a-format", metavar="FORMAT", help="only instructions with these operands")
    add("--d-format", metavar="FORMAT", help="only instructions with this result")
    add("--evidence", metavar="TEXT", help="only rows whose evidence contains TEXT")
    add("--methods", action="store_true", help="list the recovery methods instead")
    add("--devices", action="store_true", help="list the devices instead")
    add("--url", action="store_true", help="of one instruction: the address of its page, at the playground set to it")
    add("--picture", metavar="FILE.svg", help="of one instruction: draw the order of its sum")
    add("--json", action="store_true", help="print JSON")
    parser.goes_without(("--methods",), ("--devices",))
    parser.goes_without(
        ("names", "--a-format", "--d-format", "--evidence", "--url", "--picture"), ("--methods", "--devices")
    )
    parser.goes_with(("--url", "--picture"), ("names",), "one instruction: give arch:name")
