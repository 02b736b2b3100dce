"""`mpgemm check-kernel` checks an Ascend GEMM kernel on this machine: it runs PTO kernels and reads emitted AscendC kernels."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted

if TYPE_CHECKING:
    from pathlib import Path

    from ascend.emit.ascendc_check import AscendCCheck
    from ascend.emit.check import PtoCheck

QUESTION = "plan a block"
SUMMARY = "run a PTO kernel here and check bits, flags, races in L1, L0 and UB; check the text of an AscendC kernel"
EXAMPLES = (
    (
        "kernel/",
        "the kernel that mpgemm plan --emit pto (run here) or --emit ascendc (read here) wrote into kernel/",
    ),
    ("gemm.cpp 256 512 384 --entry gemm --cores 6 --layout nt", "your own kernel of C = A B, called as gemm(c, a, b)"),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add(
        "file",
        metavar="FILE",
        help="folder that plan --emit pto or ascendc wrote, or the C++ file of a PTO kernel (needs a C++17 compiler)",
    )
    add(
        "size",
        nargs="*",
        type=int,
        metavar="M K N",
        help="size of the product, for a kernel of your own: A is M x K, B is K x N",
    )
    own = parser.add_argument_group("your own kernel").add_argument
    own("--entry", metavar="NAME", help="name of the kernel, or of the function that launches it")
    own(
        "--cores",
        type=int,
        metavar="COUNT",
        help="number of blocks (one for each core) with which the kernel is launched",
    )
    own(
        "--arguments",
        metavar="NAMES",
        help="the kernel's arguments in order, separated by commas: a, b and c stand for the matrices, other "
        "words are passed as they are (default c,a,b)",
    )
    own(
        "--operand",
        choices=("fp16", "bf16", "fp32", "int8"),
        help="format of A and B (default fp16); C is FP32, or int32 for integers",
    )
    own("--layout", choices=("nd", "nt"), help="nd: B has K rows of N elements; nt: N rows of K elements (default nd)")
    own("--chip", metavar="NAME", help="chip whose buffer sizes are assumed (default 910B3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random elements of A and B (default 0)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> Output:
    """Carry out the command; the exit status is 1 if the kernel has a fault."""
    from pathlib import Path

    import ascend
    from ascend.emit.user_kernels import OwnKernel, check_own

    path = Path(args.file)
    given = [
        name for name in ("entry", "cores", "arguments", "operand", "layout", "chip") if getattr(args, name) is not None
    ]
    if path.is_dir():
        if given or args.size:
            raise ValueError(
                f"the record in {path} states size and options: leave out {'the size' if args.size else '--' + given[0]}"
            )
        found = _check_folder(path, args)
    else:
        if len(args.size) != 3 or args.entry is None or args.cores is None:
            raise ValueError(
                f"{path} is a kernel without a record of its plan, which needs M K N, --entry NAME and --cores "
                "COUNT: give all three"
            )
        m, k, n = args.size
        kernel = OwnKernel(
            path, args.entry, args.cores, m, k, n, args.operand or "fp16", args.layout or "nd",
            tuple((args.arguments or "c,a,b").split(",")), ascend.get_chip(args.chip or "910B3"),
        )  # fmt: skip
        found = check_own(kernel, seed=args.seed)
    return Output(found.to_dict(), map(fitted, found.sentences()), status=int(not found.sound))


def _check_folder(path: Path, args: argparse.Namespace) -> PtoCheck | AscendCCheck:
    """Find the faults of a kernel that --emit wrote: a PTO kernel is run, an AscendC kernel is read."""
    from ascend.emit.ascendc_check import check_ascendc_kernel
    from ascend.emit.check import check_emitted, record_of

    if record_of(path).get("dialect") != "ascendc":
        return check_emitted(path, seed=args.seed)
    if "seed" in args.given:
        raise ValueError(
            f"{path} holds an AscendC kernel, which is read and not run, so --seed has no effect: leave --seed out"
        )
    return check_ascendc_kernel(path)
