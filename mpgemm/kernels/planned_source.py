"""Writes the text of a plan's Triton kernels, with the loops over words, products and chains unrolled.

triton-ascend 3.2.0, the release on PyPI, has no tuples of tensors and no tl.static_range over them, so the loops of
:mod:`mpgemm.kernels.source` are unrolled when the text is written. Products, chains and roundings are those of the form.
"""

from typing import NamedTuple

from mpgemm.kernels.forms import KernelForm

#: The release of triton-ascend whose front end compiles the text (tests/kernels/test_planned.py).
TRITON_ASCEND = "3.2.0"

_TEXT = '''"""C = A B with FP32 accuracy from FP16 words, in Triton for Ascend. Written by mpgemm for one plan; see record.json.

The kernels compile with triton-ascend {version} (PyPI); they have not run on a device.
"""

import triton
import triton.language as tl


@triton.jit
def split_words(x, out, rows, columns, x_row, x_column, plane, BLOCK: tl.constexpr):
    """Write the words of a matrix as planes: out[j] is word j, contiguous; it rounds the rest times 2^({scale} j)."""
    blocks = tl.cdiv(columns, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    at = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = at < columns
    places = out + row * columns + at
    rest = tl.load(x + row * x_row + at.to(tl.int64) * x_column, mask=inside, other=0.0)
{split}


@triton.jit
def gemm(
    a, b, c, a_row, a_k, a_plane, b_k, b_column, b_plane, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BAND: tl.constexpr,
):
    """Compute one tile of C per program, in bands of BAND rows of tiles: {products} of words in one pass over k."""
    down: tl.constexpr = (M + BM - 1) // BM
    across: tl.constexpr = (N + BN - 1) // BN
    program = tl.program_id(0)
    band = program // (BAND * across)
    height = tl.minimum(down - band * BAND, BAND)
    inside_band = program % (BAND * across)
    rows = (band * BAND + inside_band % height) * BM + tl.arange(0, BM)
    columns = inside_band // height * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_places = a + rows[:, None].to(tl.int64) * a_row + inner[None, :].to(tl.int64) * a_k
    b_places = b + inner[:, None].to(tl.int64) * b_k + columns[None, :].to(tl.int64) * b_column
{sums}
    for start in range(0, K, BK):
        a_inside = rows[:, None] < M
        b_inside = columns[None, :] < N
        if K % BK:
            a_inside = a_inside & (inner[None, :] < K - start)
            b_inside = b_inside & (inner[:, None] < K - start)
{loads}
{dots}
        a_places += tl.full((), BK, tl.int64) * a_k
        b_places += tl.full((), BK, tl.int64) * b_k
{joined}
    places = c + rows[:, None].to(tl.int64) * N + columns[None, :]
    tl.store(places, value, mask=(rows[:, None] < M) & (columns[None, :] < N))
'''


class _Operand(NamedTuple):
    name: str  # name of the pointer
    word: str  # name of its words in the text
    words: int


def _operands(form: KernelForm) -> tuple[_Operand, _Operand]:
    return _Operand("a", "x", form.words[0]), _Operand("b", "y", form.words[1])


def check_form(form: KernelForm) -> None:
    """Refuse a form other than whole chains of FP16 words that start at zero, with a ValueError."""
    if (
        form.format != "fp16"
        or form.rounding != "rne"
        or any(form.restarts)
        or form.start
        or form.words[0] != form.words[1]
    ):
        raise ValueError(
            f"got {form}, expected words of fp16 that are rounded to nearest, and chains over all of k, for the Triton "
            "kernel of a plan: emit another language, for example with --emit pto"
        )


def kernel_text(form: KernelForm) -> str:
    """Return the source of `split_words` and `gemm` for a form."""
    check_form(form)
    return _TEXT.format(
        version=TRITON_ASCEND, scale=form.scale, split=_indented(_split(form), 1), products=f"{len(form.products)} products",
        sums=_indented([f"sum{chain} = tl.zeros((BM, BN), tl.float32)" for chain in range(len(form.restarts))], 1),
        loads=_indented(_loads(form), 2), dots=_indented(_dots(form), 2), joined=_indented(_joined(form), 1),
    )  # fmt: skip


def _indented(lines: list[str], depth: int) -> str:
    return "\n".join("    " * depth + line for line in lines)


def _times_power(x: str, exponent: int) -> str:
    return f"({x} * {2.0**exponent!r})" if exponent else x


def _split(form: KernelForm) -> list[str]:
    lines, count = [], form.words[0]
    for j in range(count):
        lines.append(f"word{j} = {_times_power('rest', j * form.scale)}.to(tl.float16)")
        lines.append(f"tl.store(places, word{j}, mask=inside)")
        if j + 1 < count:
            lines.append(f"rest = rest - {_times_power(f'word{j}.to(tl.float32)', -j * form.scale)}")
            lines.append("places += plane")
    return lines


def _loads(form: KernelForm) -> list[str]:
    lines = []
    for name, word, words in _operands(form):
        for j in range(words):
            at = f"{name}_places" + (f" + tl.full((), {j}, tl.int64) * {name}_plane" if j else "")
            lines.append(f"{word}{j} = tl.load({at}, mask={name}_inside, other=0.0)")
    return lines


def _dots(form: KernelForm) -> list[str]:
    return [
        f"sum{chain} = tl.dot(x{i}, y{j}, sum{chain})"
        for (i, j), chain in zip(form.products, form.chains, strict=True)
    ]  # fmt: skip


def _joined(form: KernelForm) -> list[str]:
    """Return lines that add the chains of each level, multiply by the level's power of two, and add the next level."""
    lines = []
    for level, (chains, shift) in enumerate(zip(form.levels, form.shifts, strict=True)):
        total = " + ".join(f"sum{chain}" for chain in chains)
        if level:
            total = f"value + ({total})" if len(chains) > 1 else f"value + {total}"
        lines.append(f"value = {total}")
        if shift:
            lines.append(f"value = {_times_power('value', -shift)}")
    return lines
