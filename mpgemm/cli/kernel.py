"""`mpgemm kernel` writes a recovery method as a kernel for a GPU, with a record that predicts its bits."""

from __future__ import annotations

import argparse

from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted

QUESTION = "compare corrections"
SUMMARY = "write a GPU kernel of a recovery method, and a record from which its results are predicted bit for bit"
EXAMPLES = (
    ("ootomo_tf32 --target sm_90 --out kernel", "FP32 accuracy from TF32 units of an H100"),
    (
        "bf16x9:restart_every=64 --target sm_100 --out kernel --check",
        "write a kernel, run its PTX on this machine and compare the result with the simulation",
    ),
)

#: Sentences for targets on which kernels of this source have run.
RUN_ON = {
    "sm_90": "kernels compiled from this source gave the predicted bits on an H100 (docs/kernels_on_gpus.md); this text has "
    "not run on hardware"
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add(
        "method", metavar="METHOD",
        help="recovery method, with options after a colon: ootomo_tf32, bf16x9:restart_every=64, "
        "ozaki2_int8:moduli=15, ... (a method without a kernel is refused)",
    )  # fmt: skip
    add(
        "--target", required=True, metavar="TARGET",
        help="architecture of the GPU: sm_80, sm_86, sm_89, sm_90, sm_100, sm_120, gfx942 or gfx950",
    )  # fmt: skip
    add(
        "--out", required=True, metavar="FOLDER",
        help="folder into which PTX (for AMD: assembly), cubin, source and record.json are written",
    )  # fmt: skip
    add(
        "--shape", nargs=3, type=int, default=[4096, 4096, 4096], metavar=("M", "N", "K"),
        help="sizes of the product for which tiles are chosen (default 4096 4096 4096)",
    )  # fmt: skip
    add(
        "--tile", nargs=5, type=int, metavar=("M", "N", "K", "WARPS", "STAGES"),
        help="sizes of a thread block's tile in elements, its number of warps, and the number of pipeline stages "
        "(default: chosen for --shape)",
    )  # fmt: skip
    add(
        "--scale", choices=("auto", "rows", "none"),
        help="scaling of rows of A and columns of B by powers of two: rows (always), none, or auto, which scales for "
        "words of fp16 (default auto)",
    )  # fmt: skip
    add(
        "--no-repair", action="store_true",
        help="keep elements that are infinite or NaN after the words are multiplied (default: compute them again in FP32)",
    )  # fmt: skip
    add(
        "--check", action="store_true",
        help="run the PTX on this package's emulator and compare its bits with the simulation; exit status 1 if a bit "
        "differs",
    )  # fmt: skip
    add("--json", action="store_true", help="print the record as JSON")


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError, OSError on bad input."""
    from mpgemm.kernels.configurations import Configuration
    from mpgemm.kernels.writing import write_kernel
    from tensorcore_models.gpu.targets import get_target

    target = get_target(args.target)
    row = _row(args)
    if min(args.shape) < 1:
        raise ValueError(f"--shape needs positive sizes, got {' '.join(map(str, args.shape))}")
    if args.check and not target.gated:
        raise ValueError(
            f"--check runs the kernel's text, but this package cannot run code of {target.name}: leave --check out"
        )
    tile = None if args.tile is None else Configuration(*args.tile)
    types = ("bf16" if row.name.startswith("bf16xfp32") else "fp32", "fp32")
    try:
        written = write_kernel(row, args.method, target, args.out, tuple(args.shape), tile, types)
    except ImportError as error:
        raise ValueError(str(error)) from None
    record, wrong = written.record, 0
    if args.check:
        results = _checked(row, target, written, types)
        wrong = sum(result.differ for result in results)
        record = {
            **record,
            "check": [
                {"data": r.data, "shape": list(r.shape), "elements": r.elements, "differ": r.differ} for r in results
            ],
        }
    return Output(record, [fitted(_described(written.files, record, args.out))], status=int(wrong > 0))


def _row(args: argparse.Namespace):
    """Return the method's row. Raises ValueError for options that the method does not take."""
    from mpgemm.kernels.recipes import recipe
    from mpgemm.kernels.residues import RESIDUES, residue_method

    if args.method.partition(":")[0] != RESIDUES:
        return recipe(args.method, args.scale or "auto", not args.no_repair, parts=1)
    if args.scale or args.no_repair:
        raise ValueError(
            f"{args.method} always scales rows and columns and never repairs, so --scale and --no-repair have no effect: leave "
            f"both out"
        )
    return residue_method(args.method)


def _checked(row, target, written, types) -> list:
    """Run the written texts here, at a shape for which they were compiled, and return the comparisons with the simulation."""
    from mpgemm.kernels.configurations import Configuration
    from mpgemm.kernels.gate import GateCase, ResidueCase, near_tile, text_machine
    from tensorcore_models.gpu.launchers import CompiledText

    texts = [CompiledText(x.launch.function, x.assembly, x.parameters) for x in written.kernels]
    tile = Configuration(**written.record["configuration"])
    case = GateCase(row, target, tile, types=types) if row.kind == "words" else ResidueCase(row, target, tile)
    shape = near_tile(tile, tuple(written.record["shape"]))
    return list(case.check(shapes=[shape], machine=text_machine(target, texts)))


def _described(files: tuple[str, ...], record: dict, folder: str) -> str:
    """Return a description of the written files."""
    recipe, tile = record["recipe"], record["configuration"]
    counts = record["kernels"][0]["counts"]
    shown = [x for x in ("order", "restart_every", "equilibrate", "repair") if x in recipe]
    said = ", ".join(f"{x}={recipe[x]}" for x in shown)
    said = said or f"{len(recipe['moduli'])} moduli, {recipe['bits']} bits of each operand"
    lines = [
        f"{record['method']} for {record['target']}: {', '.join(files)} in {folder}",
        f"tile {tile['rows']} x {tile['columns']} x {tile['depth']}, {tile['warps']} warps, {tile['stages']} stages",
        f"bits: those of recovered_gemm with the row {recipe['row']}, {said}, on {record['unit'] or 'a unit without a model'}",
    ]
    if counts:
        lines.append("instructions in the text: " + ", ".join(f"{name} {number}" for name, number in counts.items()))
    for check in record.get("check", ()):
        lines.append(f"checked on {check['data']} data: {check['differ']} of {check['elements']} elements differ")
    if "check" not in record:
        lines.append(
            "not run here; --check runs it and compares its bits"
            if record["bits_checked_here"]
            else "not run here, because no machine here runs its text"
        )
    return "\n".join([*lines, RUN_ON.get(record["target"], "it has not run on hardware")])
