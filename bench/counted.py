"""This script makes tables of counted costs without a GPU: ``python bench/counted.py speeds`` and ``... parts``.

- speeds: products from words in memory on an H100, predicted from the SASS of their loops and one recorded time of a
  prototype.
- parts: ratio of the time with the chosen number of parts of k to that with the best number, for products with few rows.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from mpgemm.kernels.configurations import BYTE, BYTES, LAUNCH, UNIT, word_configuration
from mpgemm.kernels.forms import KERNELS, kernel_form, kernel_method
from mpgemm.recovery.parts import LEAST_PRODUCTS, PART_UNIT, part_length, parts_of
from tensorcore_models.gpu.targets import get_target

TARGET = "sm_90"
#: Lanes of a multiprocessor of an H100, as in :data:`mpgemm.kernels.configurations.BYTE`.
LANES = 128
#: Cycles of an H100 in a second.
CLOCK = 1.755e9

# -- speeds ------------------------------------------------------------------------------------------------------------------
METHODS = ("ootomo", "bf16x3", "bf16x6", "bf16x9", "tf32x3")
SIDES = (4096, 8192)
#: Prototype whose product alone was timed on an H100 (2026-11-26): method, side, milliseconds; its loop had as many
#: instructions as that of the method here (226, of which 12 HGMMA).
PROTOTYPE = ("ootomo", 4096, 0.81)
#: Milliseconds to make the words of both operands: two words of FP16, 4 bytes read and 4 written an element.
WORDS = 0.13
#: Schedulers of a multiprocessor; each issues an instruction of a warp in a cycle.
SCHEDULERS = 4


@dataclass(frozen=True)
class CountedSpeed:
    """`CountedSpeed` holds the predicted time of a method's product.

    Attributes
    ----------
    method : str
    side : int
        m = n = k.
    instructions, products : int
        Numbers of instructions in the loop of one thread: all, and those of the matrix unit.
    registers : int
    product, words, adding : float
        Milliseconds of the product, of the words of both operands, and of adding parts of k.
    """

    method: str
    side: int
    instructions: int
    products: int
    registers: int
    product: float
    words: float
    adding: float

    @property
    def rates(self) -> tuple[float, float]:
        """Return the TFLOP/s of the product alone and of the whole call."""
        work = 2 * self.side**3 / 1e9
        return work / self.product, work / (self.product + self.words + self.adding)


def speeds() -> Iterator[CountedSpeed]:
    """Yield each method at each side, from the cycles of the unit at a fixed share of its published rate plus the issue cycles.

    With this share, 0.65, the prototype's product takes the recorded time; cuBLAS's FP16 product of that size reached
    0.66 (649 of 989 TFLOP/s, measured).
    """
    from mpgemm import kernels
    from tensorcore_models.gpu.counting import loop_count, register_count

    counted = {}
    for method in METHODS:
        plan = kernels.plan(4096, 4096, 4096, method, device=TARGET, scale="none")
        product = next(kernel for kernel in plan.kernels if kernel.launch.function == "word_product")
        counted[method] = plan.tile, loop_count(product.binary, 1), register_count(product.binary)

    def cycles(method: str, side: int) -> tuple[float, float]:
        """Return (cycles of the unit at its published rate, cycles that issue other instructions) of a product."""
        tile, loop, _ = counted[method]
        form, target = kernel_form(kernel_method(method)), get_target(TARGET)
        turns = -(-side // tile.depth) * -(-((side // tile.rows) * (side // tile.columns)) // target.multiprocessors)
        unit = tile.rows * tile.columns * tile.depth * len(form.products) / (UNIT[form.format] * LANES)
        others = (loop.instructions - loop.opcodes["HGMMA"]) * tile.warps / SCHEDULERS
        return turns * unit, turns * others

    unit, others = cycles(*PROTOTYPE[:2])
    share = unit / (1e-3 * PROTOTYPE[2] * CLOCK - others)
    for method in METHODS:
        row, (_, loop, registers) = kernel_method(method), counted[method]
        form = kernel_form(row)
        moved = 4 + form.words[0] * BYTES[form.format]
        for side in SIDES:
            unit, others = cycles(method, side)
            words = WORDS * (side / PROTOTYPE[1]) ** 2 * moved / 8
            parts = parts_of(side, side, row)
            bytes_of_parts = 8 * parts * side * side if parts > 1 else 0
            yield CountedSpeed(
                method, side, loop.instructions, loop.opcodes["HGMMA"], registers, 1e3 * (unit / share + others) / CLOCK,
                words, 1e3 * bytes_of_parts * BYTE / (LANES * get_target(TARGET).multiprocessors * CLOCK),
            )  # fmt: skip


def _print_speeds() -> None:
    print(
        "| method | side | instructions, HGMMA | registers | product: ms, TFLOP/s | words, parts: ms | call: TFLOP/s |"
    )
    print("|---|---|---|---|---|---|---|")
    for row in speeds():
        alone, call = row.rates
        print(
            f"| `{row.method}` | {row.side} | {row.instructions}, {row.products} | {row.registers} | "
            f"{row.product:.2f}, {alone:.0f} | {row.words:.2f}, {row.adding:.2f} | {call:.0f} |"
        )


# -- parts -------------------------------------------------------------------------------------------------------------------
#: n, k of linear layers by model: https://huggingface.co, config.json of each.
LAYERS = {
    "GPT-2": ((2304, 768), (768, 768), (3072, 768), (768, 3072)),
    "Llama 3.1 8B": ((4096, 4096), (1024, 4096), (14336, 4096), (4096, 14336), (128256, 4096)),
    "Llama 3.1 70B": ((8192, 8192), (1024, 8192), (28672, 8192), (8192, 28672)),
    "Qwen2.5 7B": ((3584, 3584), (512, 3584), (18944, 3584), (3584, 18944)),
    "Gemma 2 9B": ((4096, 3584), (2048, 3584), (14336, 3584), (3584, 14336), (3584, 4096)),
    "DeepSeek V3": ((1536, 7168), (576, 7168), (24576, 1536), (7168, 16384), (2048, 7168), (7168, 2048), (256, 7168)),
    "Mixtral 8x7B, router": ((8, 4096),),
}
ROWS = (1, 2, 4, 8, 16, 32, 64)
#: Launches of a call besides the one that adds parts: words, product, repair.
LAUNCHES = 3


def microseconds(method: str, m: int, n: int, k: int, parts: int) -> float:
    """Return the time of a call on an H100 with B split before: rounds of the unit or all of B's words, and launches.

    The count leaves out memory latency, and includes all products of every tile, also of rows beyond the matrix.
    """
    form, target = kernel_form(kernel_method(method)), get_target(TARGET)
    length = part_length(parts, k)
    count = -(-k // length)
    tile = word_configuration(form, target, m, n, length, count)
    rounds = -(-count * -(-m // tile.rows) * -(-n // tile.columns) // target.multiprocessors)
    unit = rounds * length * tile.rows * tile.columns * len(form.products) / UNIT[form.format]
    read = n * k * form.words[1] * BYTES[form.format] * BYTE / target.multiprocessors
    added = LAUNCH + 8 * count * m * n * BYTE / target.multiprocessors if count > 1 else 0
    return 1e6 * (LAUNCHES * LAUNCH + max(unit, read) + added) / (LANES * CLOCK)


def allowed(method: str, k: int, parts: int) -> bool:
    """Return whether so many parts cost a product of many rows at most a tenth of its time."""
    form = kernel_form(kernel_method(method))
    return parts == 1 or parts * LEAST_PRODUCTS <= k * len(form.products) * (2 if form.format == "tf32" else 1)


def distances(methods=tuple(KERNELS), rows=ROWS) -> Iterator[tuple[str, int, int, float, float]]:
    """Yield (model, n, k, ratio, ratio) of the rule's time, the largest of the methods and rows.

    The first ratio is to the best number of parts that many rows allow, the second to the best of all.
    """
    for model, layers in LAYERS.items():
        for n, k in layers:
            found = []
            for method in methods:
                own = parts_of(n, k, kernel_method(method))
                tried = [p for p in (1, 2, 4, 8, 16, 32, 64) if p == 1 or p * PART_UNIT <= k]
                for m in rows:
                    times = {p: microseconds(method, m, n, k, p) for p in {*tried, own}}
                    within = min(time for p, time in times.items() if allowed(method, k, p))
                    found.append((times[own] / within, times[own] / min(times.values())))
            yield model, n, k, *(max(ratios) for ratios in zip(*found, strict=True))


def _print_parts() -> None:
    print(
        "| model | n, k | parts: ootomo, bf16x9, tf32x3 | over the best that many rows allow | over the best of all |"
    )
    print("|---|---|---|---|---|")
    for model, n, k, within, best in distances():
        parts = ", ".join(str(parts_of(n, k, kernel_method(x))) for x in ("ootomo", "bf16x9", "tf32x3"))
        print(f"| {model} | {n}, {k} | {parts} | {within:.2f} | {best:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("speeds", "parts"))
    {"speeds": _print_speeds, "parts": _print_parts}[parser.parse_args().table]()
