"""`mpgemm report`: one page, HTML or Markdown, from the folders that other commands wrote."""

from mpgemm.options.parser import Parser

QUESTION = "keep results, check the installation"
SUMMARY = "one page, HTML or Markdown, from the folders that other commands wrote"
EXAMPLES = (
    ("out", "one page of what --out wrote"),
    ("out1 out2 --out page.html --title 'Our layers'", "a page that opens without a network"),
)

MOST_ROWS = 60

FORMATS = ("html", "markdown")


def add_arguments(parser: Parser) -> None:
    """Arguments of the command."""
    add = parser.add_argument
    add("folders", nargs="+", metavar="FOLDER", help="what --out of evaluate, compare, plan or simulate wrote")
    add("--out", "--output", metavar="FILE", help="where the page goes (standard output)")
    add("--format", choices=FORMATS, help="of the page (html if FILE ends in .html, else markdown)")
    add("--title", default="Results", help="heading of the page")
    add("--rows", type=int, default=MOST_ROWS, metavar="COUNT", help=f"rows shown of a table ({MOST_ROWS})")
    add("--json", action="store_true", help="print what the page holds instead: folders, tables, pictures")
    parser.goes_without(("--out", "--format", "--rows"), ("--json",))
