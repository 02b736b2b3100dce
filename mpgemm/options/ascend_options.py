"""Options that `mpgemm plan` and `mpgemm simulate` share: the size, the chip, the kernel."""

import argparse

from mpgemm.options.words import ASSUMED_SIZE, LAYOUTS, MERGES, MODES, OPERANDS

#: Options of the kernel, which not everything that these commands show depends on.
KERNEL_OPTIONS = (
    "--terms", "--buffering", "--mode", "--operand", "--merge", "--layout", "--split", "--presplit", "--warm",
)  # fmt: skip


def add_chip_arguments(parser: argparse.ArgumentParser, *, several_chips: bool = False) -> argparse._ArgumentGroup:
    """The group "chip": which one, and what is changed of it."""
    from ascend.chips.files import list_chips  # its names are in the help of these commands alone

    chip = parser.add_argument_group("chip")
    add = chip.add_argument
    add(
        "--chip", metavar="NAME", action="append",
        help=f"{', '.join(list_chips())}, or a .toml or CANN .ini file (default 910A)"
        + ("; more than once to compare chips" if several_chips else ""),
    )  # fmt: skip
    add("--calibrated", action="store_true", help="use the chip's fitted parameters, too")
    add(
        "--set", action="append", default=[], metavar="PARAMETER=VALUE", dest="changes",
        help="what if: another value of a chip parameter (mpgemm plan --list-parameters)",
    )  # fmt: skip
    return chip


def add_shared_arguments(parser: argparse.ArgumentParser, *, several_chips: bool = False) -> None:
    """Size, chip and kernel."""
    parser.add_argument(
        "size", nargs="*", type=int, metavar="M K N",
        help=f"A is M x K, B is K x N (default {' '.join(map(str, ASSUMED_SIZE))})",
    )  # fmt: skip
    chip = add_chip_arguments(parser, several_chips=several_chips)
    chip.add_argument("--list-parameters", action="store_true", help="the chip's numbers and where they come from")
    kernel = parser.add_argument_group("kernel")
    add = kernel.add_argument
    add(
        "--terms", type=int, choices=(1, 3, 4),
        help="products for each FP32 product (simulate: 3; plan: compares them all unless --terms or --operand says which)",
    )  # fmt: skip
    add("--buffering", default="double", choices=("single", "double"))
    add("--mode", choices=MODES, help="how the terms are combined (termwise; plan: or fused, if faster)")
    add("--operand", choices=OPERANDS, help="format of A and B on the cube (fp16); others have one term")
    add(
        "--merge",
        default="reduce",
        choices=MERGES,
        help="slices of k: added in order, or atomically in memory (reduce)",
    )
    add(
        "--layout",
        default="nz",
        choices=LAYOUTS,
        help="how A and B lie in memory, with one term: NZ fractals, ND rows, or ND with B as N x K rows (nz)",
    )
    add("--split", type=int, metavar="COUNT", help="slices of k")
    add(
        "--presplit", default="", choices=("a", "b", "ab"),
        help="operands whose words are there already: weights that were split once",
    )  # fmt: skip
    add("--warm", action="store_true", help="A, B and C are in L2 at the start if they fit, as in a timing loop")
