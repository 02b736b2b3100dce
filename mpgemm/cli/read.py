"""`mpgemm read` shows what a compiled kernel computes, and whether two kernels give the same bits."""

from __future__ import annotations

import argparse
from typing import Any

from mpgemm.cli.common.kernel_options import add_launch_arguments, launch_arguments, read_kernel
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted

QUESTION = "debug a kernel"
SUMMARY = "show what a compiled kernel (PTX, AMDGCN) computes, and whether two kernels give the same bits"
EXAMPLES = (
    (
        "gemm.ptx --arguments fp16:64x64 fp16:64x64 fp32:64x64 64 64 64 --grid 2 2",
        "chains of k, promotion, and the operations after the sum",
    ),
    (
        "gemm.ptx other.ptx --arguments fp16:64x64 fp16:64x64 fp32:64x64 64 64 64 --grid 2 2",
        "do two kernels give the same bits?",
    ),
    (
        "gemm.ptx --arguments fp16:64x64 fp16:64x64 fp32:64x64 64 64 64 --grid 2 2 --html gemm.html",
        "a page with the code, the expression and its picture",
    ),
    ("gemm.ptx --cubin gemm.sass", "did ptxas contract products and additions?"),
    ("gemm.ptx", "its target, its parameters, and its instructions without a model"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add(
        "kernels",
        nargs="+",
        metavar="KERNEL",
        help="file of a kernel (PTX, AMDGCN), or two files, whose kernels are compared",
    )
    add_launch_arguments(parser)
    add("--rows", nargs="+", type=int, metavar="N", help="rows of the output to analyse (default: all)")
    add("--other-grid", nargs="+", type=int, metavar="N", help="grid of the second kernel (default: that of the first)")
    add("--out", metavar="FILE.npy", help="run the kernel on this machine and write its output to a .npy file")
    add(
        "--cubin",
        metavar="FILE.cubin",
        help="count the instructions of this cubin, or of its SASS as text, beside those of the PTX, which shows "
        "whether ptxas contracted products and additions",
    )
    add("--html", metavar="FILE.html", help="write an HTML page with code, expressions and pictures")
    add("--picture", metavar="FILE.svg", help="draw the expression that computes most elements of the output")
    add("--seed", type=int, default=0, help="seed of the random values in --arguments (default 0)")
    add("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> Output:
    """Carry out the command; the exit status is 1 if two kernels do not give the same bits.

    Raises ValueError, TypeError, OSError on bad input.
    """
    from tensorcore_models import compiled
    from tensorcore_models.compiled.picture import expression_svg
    from tensorcore_models.files import write_text

    if len(args.kernels) > 2:
        raise ValueError(f"got {len(args.kernels)} kernels, expected one to read or two to compare")
    if len(args.kernels) == 1 and args.other_grid:
        raise ValueError(
            "--other-grid is the grid of a second kernel, got one kernel: name a second kernel, or leave --other-grid out"
        )
    programs = [read_kernel(path, args) for path in args.kernels]
    if args.cubin:
        return _beside_sass(programs, args)
    if args.arguments is None:
        for option in ("out", "html", "picture", "output", "rows", "fmad", "unit", "block", "other_grid"):
            if getattr(args, option) is not None:
                raise ValueError(f"--{option.replace('_', '-')} needs --arguments, which are missing: give --arguments")
        return _described(programs)
    arguments = launch_arguments(args.arguments, args.seed)
    options: dict[str, Any] = {"unit": args.unit, "block": args.block}
    if len(programs) == 2:
        for option in ("out", "html", "picture", "rows"):
            if getattr(args, option):
                raise ValueError(f"--{option} takes one kernel, got two: leave --{option} out")
        grids = args.grid, args.other_grid or args.grid
        found = compiled.compare(
            *programs, arguments=arguments, grids=grids, output=args.output, seed=args.seed, **options
        )
        verdict = {"verdict": found.verdict, "reason": found.reason, "assumptions": list(found.assumptions)}
        return Output(verdict, [fitted(str(found))], status=int(found.verdict != "equal"))
    recipe = programs[0].recipe(arguments, args.grid, output=args.output, rows=args.rows, **options)
    if args.out:
        _write(programs[0], arguments, recipe.output_number, options, args)
    if args.picture:
        if not args.picture.endswith(".svg"):
            raise ValueError(f"--picture got {args.picture!r}, expected a file that ends in .svg")
        write_text(args.picture, expression_svg(recipe) + "\n")
    if args.html:
        from mpgemm.reporting.kernel_page import kernel_page

        write_text(args.html, kernel_page(programs[0], recipe))
    facts = {"kernel": recipe.kernel, "rows": recipe.to_rows(), "assumptions": list(recipe.assumptions)}
    return Output(facts, [fitted(str(recipe))])


def _beside_sass(programs: list, args: argparse.Namespace) -> Output:
    """Return the counts of PTX and SASS instructions; the exit status is 1 if ptxas contracted."""
    from tensorcore_models.compiled.ptx.program import PTXProgram
    from tensorcore_models.compiled.sass import beside_sass, disassembled

    if len(programs) != 1 or args.arguments is not None:
        given = "" if args.arguments is None else " and --arguments"
        raise ValueError(
            f"--cubin takes the PTX of one kernel and no --arguments, got {len(programs)} "
            f"kernel(s){given}: leave the second kernel and --arguments out"
        )
    if args.fmad is not None:
        raise ValueError("--cubin itself shows whether ptxas contracted, so --fmad has no effect: leave --fmad out")
    if not isinstance(programs[0], PTXProgram):
        raise ValueError(
            "--cubin compares SASS with PTX, got a kernel that is not PTX: give its PTX, or leave --cubin out"
        )
    found = beside_sass(programs[0], disassembled(args.cubin))
    facts = {"kernel": found.kernel, "verdict": found.verdict, "reason": found.reason, "rows": found.to_rows()}
    return Output(facts, [fitted(str(found))], status=int(found.verdict == "contracted"))


def _described(programs: list) -> Output:
    """Return the facts on kernels that are known without --arguments."""
    facts = [
        {
            "kernel": program.name,
            "target": program.target,
            "parameters": [f"{p.name.removeprefix(f'{program.name}_')} ({p.size} bytes)" for p in program.parameters],
            "unknown": [f"{opcode} (line {line})" for opcode, line in program.unknown.items()],
        }
        for program in programs
    ]
    lines = [
        f"{row['kernel']} for {row['target']}\nparameters: {', '.join(row['parameters']) or 'none'}\n"
        f"instructions without a model: {', '.join(row['unknown']) or 'none'}"
        for row in facts
    ]
    return Output(facts, map(fitted, [*lines, "--arguments and --grid show what the kernel computes"]))


def _write(program, arguments: list, place: int, options: dict, args: argparse.Namespace) -> None:
    """Run the kernel and write its output."""
    import numpy as np

    from tensorcore_models.files import atomic_writer

    program.run(arguments, args.grid, unpublished="nearest", **options)
    with atomic_writer(args.out) as file:
        np.save(file, arguments[place])
