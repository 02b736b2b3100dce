"""What the commands that measure share: where their matrices come from."""

from mpgemm.options.parser import Parser


def add_input_arguments(parser: Parser, default: str) -> None:
    """The group "input": files, shipped pairs, or generated matrices; `default` says what is taken without any."""
    from mpgemm.inputs import matrices  # its names are in the help of this command alone

    add = parser.add_argument_group(f"input (default: {default})").add_argument
    add(
        "files",
        nargs="*",
        metavar="FILE",
        help="A and B (or one file and both names), or stacks of them: .npy, .npz (sparse, too), .mtx, .csv, .safetensors, .pt",
    )
    add("--files", dest="more_files", nargs=2, default=[], metavar="FILE", help="the same as an option")
    add("--transpose-b", action="store_true", help="the second file holds B transposed: x @ W.T")
    add("--a-name", help="array or tensor of the first file")
    add("--b-name", help="array or tensor of the second file")
    add("--shipped", nargs="+", default=[], metavar="NAME", help=f"shipped pairs: {', '.join(matrices.SHIPPED)}")
    add(
        "--distribution",
        "--distributions",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"generate: {', '.join(matrices.DISTRIBUTIONS)}",
    )
    add("--param", nargs="+", default=[], metavar="KEY=VALUE", help="parameters of the distribution")
    add("--shape", nargs=3, type=int, action="append", metavar=("M", "K", "N"), help="sizes of generated matrices")
    add("--precision", choices=("fp32", "fp64"), help="of generated matrices (default fp32)")
    add(
        "--c",
        metavar="FILE|NAME",
        help="compute A B + C: C from a matrix file, or a distribution (m x n, the same seed)",
    )
    add("--seed", type=int, help="first seed (default 0)")
    add("--repeats", type=int, help="number of seeds (default 1)")
    files = ("files", "--files")
    parser.goes_with(("--a-name", "--b-name", "--transpose-b"), files, "two matrix files")
    drawn = ("--shape", "--seed", "--repeats", "--precision")
    parser.goes_without(drawn, (*files, "--shipped"), "matrices that are generated")
    parser.goes_with(("--param",), ("--distribution",))
