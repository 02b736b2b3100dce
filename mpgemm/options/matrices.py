"""What the commands about one pair of matrices share: files, a shipped pair, or a distribution."""

import argparse

from mpgemm.options.parser import Parser


def add_matrix_arguments(parser: Parser, default: str, k: bool = False) -> argparse._ArgumentGroup:
    """The group "input"; `default` says what is taken without any, `k` adds --k beside --shape."""
    from mpgemm.inputs import matrices  # its names are in the help of this command alone

    source = parser.add_argument_group(f"input (default: {default})")
    add = source.add_argument
    add("files", nargs="*", metavar="FILE", help="A and B: .npy, .npz, .mtx or .safetensors")
    add("--a-name", help="array or tensor of the first file")
    add("--b-name", help="array or tensor of the second file")
    add("--shipped", metavar="NAME", help=f"a shipped pair: {', '.join(matrices.SHIPPED)}")
    add("--distribution", metavar="NAME", help=f"draw: {', '.join(matrices.DISTRIBUTIONS)}")
    add("--param", nargs="+", default=[], metavar="KEY=VALUE", help="parameters of the distribution")
    add("--shape", nargs=3, type=int, metavar=("M", "K", "N"), help="sizes of drawn matrices")
    if k:
        add("--k", type=int, help="length of the dot products, instead of --shape")
    add("--precision", choices=("fp32", "fp64"), default="fp32", help="of drawn matrices (default fp32)")
    add("--seed", type=int, default=0, help="seed of drawn matrices (default 0)")
    parser.goes_with(("--a-name", "--b-name"), ("files",), "two matrix files")
    parser.goes_with(("--param",), ("--distribution",))
    parser.goes_without(("--shape", "--seed", "--precision"), ("files", "--shipped"), "matrices that are drawn")
    return source
