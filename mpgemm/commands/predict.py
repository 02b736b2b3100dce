"""`mpgemm predict`: what a GPU library returns for two matrices, predicted bit for bit."""

import argparse
from hashlib import sha256

import numpy as np

import tensorcore_models as tcm
from mpgemm.commands import library_options as options
from mpgemm.commands.library_names import which_library
from mpgemm.commands.scale_options import scales_of
from mpgemm.inputs.files import write_matrix
from mpgemm.reporting import report
from tensorcore_models.engines.scaling import read_scales
from tensorcore_models.explanations.orders import tree_of_order
from tensorcore_models.files import write_text
from tensorcore_models.formats.operands import values_of_bits


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises ValueError, TypeError, OSError on bad input; what nobody has measured is named with what is known.
    """
    a, b, fmt, out_format = options.read_operands(args)
    if args.library is None:
        raise ValueError(which_library(args.gpu))
    config = options.parse_config(args.config)
    (m, k), n = a.shape, b.shape[1]
    recipe = options.make_recipe(args.gpu, args.library, config, args.recorded, m, k, n, fmt, out_format)
    scaling = read_scales(**scales_of(args), m=m, k=k, n=n)
    if scaling is None:
        bits = recipe.gemm_bits(a, b, out_format=out_format, scale=args.scale)
    else:
        bits = recipe.scaled_bits(a, b, scaling, out_format=out_format)
    values = values_of_bits(bits, tcm.get_format(out_format))
    native = values if values.dtype.kind == "f" and values.dtype.isbuiltin == 1 else bits
    if args.out:
        write_matrix(args.out, native)
    if args.picture:
        write_text(args.picture, tree_of_order(recipe.order).svg(f"Order of {recipe.name}", shown=4) + "\n")
    digest = sha256(np.ascontiguousarray(bits).tobytes()).hexdigest()
    if args.json:
        whole = {"recipe": options.facts(recipe, config, args.recorded), "m": m, "k": k, "n": n, "format": fmt,
                 "out_format": out_format,
                 "scales": None if scaling is None else scaling.in_words(),
                 "sha256": digest, "first": float(values[0, 0]), "out": args.out}  # fmt: skip
        print(report.json_text(whole), end="")
        return 0
    report.say(str(recipe))
    if scaling is not None:
        report.say(f"  scales: {scaling.in_words()}")
    report.say(
        f"\npredicted result: {m} x {n} in {out_format}, first element {float(values[0, 0]):.9g} "
        f"({int(bits[0, 0]):#x}), sha256 {digest[:16]}"
    )
    if recipe.lost.size:
        report.say(
            f"warning: this kernel leaves the last {recipe.lost.size} values of k out of the sum, and so does the prediction"
        )
    if args.picture:
        print(f"wrote {args.picture}")
    if args.out:
        print(f"wrote {args.out}" + ("" if native is values else f" (encodings of {out_format})"))
    return 0
