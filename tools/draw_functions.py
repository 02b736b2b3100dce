"""This tool draws the pictures of docs/special_functions.md from errors that check_functions.py measured over all operands.

python tools/check_functions.py --errors errors.json
python tools/draw_functions.py errors.json docs/images
"""

import json
import sys
from pathlib import Path

import matplotlib
from check_functions import ABSOLUTE

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import tensorcore_models as tcm
from tensorcore_models.figures import colour_of

UNIT = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh")
LIBRARY = ("expf", "__expf", "logf", "erff", "tanhf", "torch.sigmoid", "sinf", "cosf", "tanf")


def instruction(name: str) -> str:
    """Return the instruction that is the unit alone."""
    return f"{name}.approx.f32" if name == "tanh" else f"{name}.approx.ftz.f32"


def draw_curve(axes: Axes, name: str, title: str, found: dict, colour: str) -> None:
    """Draw the least and the largest error of a function along its domain."""
    x, low, high = np.array(sorted(found["curve"])).T
    axes.fill_between(x, low, high, color=colour, linewidth=0.4, step="post")
    if (x < 0).any():
        axes.set_xscale("symlog", base=2, linthresh=2.0**-8)
        axes.set_xticks([-64, -1, -(2.0**-6), 2.0**-6, 1, 64])
    elif x.max() / x.min() > 8:
        axes.set_xscale("log", base=2)
    absolute = name.startswith(ABSOLUTE)
    if not absolute:
        axes.axhspan(-0.5, 0.5, color="0.5", alpha=0.25, linewidth=0)
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("x", fontsize=8, labelpad=1)
    axes.set_ylabel("error / $2^{-24}$" if absolute else "error / ulp", fontsize=8)
    axes.tick_params(labelsize=7)


def draw_errors(errors: dict, names: dict[str, str], columns: int, path: Path) -> None:
    """Draw the curves of several functions, with titles."""
    rows = -(-len(names) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(2.6 * columns, 1.9 * rows), layout="constrained")
    for number, (axes, (name, title)) in enumerate(zip(panels.flat, names.items(), strict=True)):
        draw_curve(axes, name, title, errors[name], colour_of(number))
    figure.savefig(path, dpi=130)


def draw_datapath(path: Path) -> None:
    """Draw the unit as boxes."""
    figure, axes = plt.subplots(figsize=(8.6, 3.1), layout="constrained")
    boxes = {
        "operand": (0.0, 1.2, "operand\n32 bits"),
        "reduce": (1.6, 1.2, "reduction\n(one for each function)"),
        "table": (3.6, 2.2, "table\nc0  c1  c2"),
        "square": (3.6, 0.2, "Q(x)\nx² above column 19"),
        "sum": (5.6, 1.2, "F = c0 + c1 x + c2 Q(x)\nexact"),
        "cut": (7.6, 1.2, "24 leading bits,\nsign, exponent"),
    }
    drawn = {}
    for name, (x, y, text) in boxes.items():
        style = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "0.2"}
        drawn[name] = axes.text(x, y, text, ha="center", va="center", fontsize=8, bbox=style, zorder=3).get_bbox_patch()
    arrows = {
        ("operand", "reduce"): "", ("reduce", "table"): "segment", ("reduce", "square"): "x, 17 bits", ("table", "sum"): "",
        ("square", "sum"): "", ("sum", "cut"): "F",
    }  # fmt: skip
    for (start, end), text in arrows.items():
        (x0, y0, _), (x1, y1, _) = boxes[start], boxes[end]
        ends = {"patchA": drawn[start], "patchB": drawn[end], "shrinkA": 0, "shrinkB": 1}
        axes.annotate("", (x1, y1), (x0, y0), arrowprops={"arrowstyle": "->", "color": "0.2", **ends})
        side = {"x, 17 bits": -0.42, "F": 0.12}.get(text, 0.2)
        axes.text((x0 + x1) / 2 + 0.05, (y0 + y1) / 2 + side, text, fontsize=7.5, ha="center", color="#0072B2")
    axes.plot([1.6, 1.6, 7.6, 7.6], [1.2, -0.45, -0.45, 0.8], color="0.2", linewidth=1)
    axes.annotate(
        "", (7.6, 1.0), (7.6, 0.7), arrowprops={"arrowstyle": "->", "color": "0.2", "shrinkA": 0, "shrinkB": 0}
    )
    axes.text(4.6, -0.38, "exponent and sign", fontsize=7.5, ha="center", color="#0072B2")
    axes.set(xlim=(-0.6, 8.4), ylim=(-0.8, 2.7))
    axes.axis("off")
    figure.savefig(path, dpi=130)


def tanh_breaks() -> np.ndarray:
    """Return the positive operands whose tanh is below that of the operand before."""
    codes = np.arange(0x3B000000, 0x41000000, dtype=np.uint32)
    results = tcm.get_function("hopper", "tanh.approx.f32").bits(codes).view(np.float32)
    return codes[1:][np.diff(results) < 0]


def draw_monotonicity(path: Path) -> None:
    """Draw where tanh falls: how often in each binade, and one place."""
    breaks = tanh_breaks()
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 2.7), layout="constrained")
    binades = np.frexp(breaks.view(np.float32))[1] - 1
    exponents = np.arange(-9, 3)
    left.bar(exponents, [(binades == e).sum() for e in exponents], color="#0072B2")
    left.set(xlabel="binade: exponent of x", ylabel="results below the one before", yscale="symlog")
    values = tcm.get_function("hopper", "tanh.approx.f32")
    drops = values.bits(breaks).view(np.float32).astype(float) - values.bits(breaks - 1).view(np.float32)
    worst = int(breaks[drops.argmin()])
    codes = np.arange(worst - 40, worst + 40, dtype=np.uint32)
    x, y = codes.view(np.float32).astype(float), values.bits(codes).view(np.float32).astype(float)
    offset = float(np.uint32(worst).view(np.float32))
    right.plot((x - offset) * 2**24, (y - y[40]) * 2**24, ".-", color="#D55E00", label="tanh.approx.f32", markersize=3)
    right.plot((x - offset) * 2**24, (np.tanh(x) - np.tanh(offset)) * 2**24, color="0.3", label="tanh, moved")
    right.set(xlabel=f"(x - {offset:.9g}) / $2^{{-24}}$", ylabel="result / $2^{-24}$")
    right.legend(fontsize=7)
    figure.savefig(path, dpi=130)
    print(f"tanh: {breaks.size} breaks, the largest drop {-drops.min() * 2**24:.1f} 2^-24 at {offset!r}")


def softmax_data() -> tuple[np.ndarray, np.ndarray]:
    """Return FP16 exponents of softmax, (4096, 1024), and their exact exponentials, from normal logits with deviation 2."""
    logits = np.random.default_rng(60).standard_normal((4096, 1024)) * 2
    exponents = ((logits - logits.max(axis=1, keepdims=True)) * np.log2(np.e)).astype(np.float16)
    return exponents, np.exp2(exponents.astype(np.float64))


def draw_softmax(path: Path) -> None:
    """Draw row sums of exponentials that are truncated, as the unit gives them, and rounded to nearest."""
    exponents, exact = softmax_data()
    unit = tcm.get_function("hopper", "ex2.approx.f16").values(exponents).astype(np.float64)
    nearest = exact.astype(np.float16).astype(np.float64)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 2.7), layout="constrained")
    for values, name, colour in ((unit, "ex2.approx.f16", "#D55E00"), (nearest, "to nearest", "#0072B2")):
        ulp = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 11, -24))
        error, sums = (values - exact) / ulp, values.sum(axis=1) / exact.sum(axis=1) - 1
        style = {"color": colour, "histtype": "step", "linewidth": 1.3}
        left.hist(error.reshape(-1), bins=np.linspace(-1.2, 0.8, 81), **style, density=True, label=name)
        right.hist(sums * 2**11, bins=np.linspace(-1.0, 0.3, 66), **style, label=name)
        print(f"{name}: mean error {error.mean():+.4f} ulp, row sums {sums.mean() * 2**11:+.4f} 2^-11 on average")
    left.set(xlabel="error of one exponential / ulp of FP16", ylabel="density")
    right.set(xlabel="error of a row's sum / $2^{-11}$", ylabel="rows")
    figure.legend(*left.get_legend_handles_labels(), fontsize=7, loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=130)


def main() -> int:
    """Draw all pictures."""
    errors, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    draw_errors(errors, {instruction(name): name for name in UNIT}, 4, folder / "functions_unit.png")
    draw_errors(errors, {name: name for name in LIBRARY}, 3, folder / "functions_library.png")
    draw_datapath(folder / "functions_datapath.png")
    draw_monotonicity(folder / "functions_tanh.png")
    draw_softmax(folder / "functions_softmax.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
