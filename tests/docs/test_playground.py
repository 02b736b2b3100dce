"""The playground's WebAssembly and JavaScript in node: the same bits as the package."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.formats import IntegerFormat

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import playground_data  # noqa: E402

RUNNER = ROOT / "tests" / "support" / "playground.js"
ROWS = [row for row in tcm.list_instructions() if row.published]
FAMILIES = sorted({type(row.accumulator).__name__ for row in ROWS})


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Folder with the module and the catalogue."""
    if not playground_data.can_compile():
        pytest.skip(playground_data.MISSING)
    if not shutil.which("node"):
        pytest.skip("node is not installed: nothing here runs the playground's scripts")
    folder = tmp_path_factory.mktemp("playground")
    playground_data.write(folder)
    return folder


def drawn(rng, fmt, shape):
    """Encodings: of numbers around 1, of any number, of small integers, zeros and specials among them."""
    bits = fmt.bits
    wild = rng.integers(0, 1 << bits, shape, dtype=np.uint64, endpoint=False) if bits < 64 else rng.bytes(0)
    if bits == 64:
        wild = np.frombuffer(rng.bytes(8 * int(np.prod(shape))), np.uint64).reshape(shape)
    if isinstance(fmt, IntegerFormat):
        return wild.astype(fmt.container)
    spread = min(6, fmt.emax - 1) if fmt.emax > 1 else 1
    low, high = max(0, fmt.bias - spread), min((1 << fmt.exponent_bits) - 1, fmt.bias + spread)
    fields = rng.integers(low, high + 1, shape, dtype=np.uint64) << np.uint64(fmt.fraction_bits + fmt.padding_bits)
    rest = wild & np.uint64(fmt.sign_bit | ((1 << fmt.fraction_bits + fmt.padding_bits) - 1))
    near = fields | rest
    kind = rng.random(shape[:1] + (1,) * (len(shape) - 1))
    share = rng.random(shape)
    codes = np.where(kind < 0.7, near, np.where(share < 0.9, near, wild))
    codes = np.where((kind > 0.85) & (share < 0.3), np.uint64(fmt.sign_bit) & wild, codes)
    return codes.astype(fmt.container)


def cases(row, count, rng):
    """(k, a, b, c, scales, expected) of `count` dot products, with a length that is no multiple of the unit's."""
    k = int(rng.integers(1, 33))
    a_format, b_format, c_format, _ = row.formats
    a, b = drawn(rng, a_format, (count, k)), drawn(rng, b_format, (count, k))
    c = drawn(rng, c_format, (count, 1))
    scales = [None] * count
    if row.scale_format:
        fmt, blocks = tcm.get_format(row.scale_format), -(-k // row.block_size)
        scales = [drawn(rng, fmt, (2, blocks)) for _ in range(count)]
    expected = [
        row.gemm_bits(x[None], y[:, None], z[None], *((s[0][None], s[1][:, None]) if s is not None else ()))[0, 0]
        for x, y, z, s in zip(a, b, c, scales, strict=True)
    ]
    return k, a, b, c[:, 0], scales, expected


def results_of(built, tmp_path, given):
    """What node computes for [(row, k, a, b, c, scales, expected)], as lists of int."""
    lines = []
    for row, (k, a, b, c, scales, _) in given:
        dots = [
            [list(map(str, x.tolist())), list(map(str, y.tolist())), str(z), *([[], []] if s is None else s.tolist())]
            for x, y, z, s in zip(a, b, c.tolist(), scales, strict=True)
        ]
        lines.append(json.dumps({"name": str(row), "k": k, "dots": dots}))
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(lines) + "\n")
    done = subprocess.run(["node", str(RUNNER), str(built), str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [[int(x) for x in json.loads(line)] for line in done.stdout.splitlines()]


def check(built, tmp_path, family, per_row, rows):
    rng = np.random.default_rng(FAMILIES.index(family))
    given = [(row, cases(row, per_row, rng)) for row in rows]
    for (row, case), found in zip(given, results_of(built, tmp_path, given), strict=True):
        expected = [int(x) for x in case[-1]]
        wrong = [i for i, (x, y) in enumerate(zip(found, expected, strict=True)) if x != y]
        assert not wrong, (str(row), case[0], [(case[1][i], case[2][i], case[3][i], found[i], expected[i]) for i in wrong[:2]])


def rows_of(family, most):
    """Rows of a family, spread over the catalogue."""
    rows = [row for row in ROWS if type(row.accumulator).__name__ == family]
    return rows[:: -(-len(rows) // most)]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_computes_the_bits_of_the_package(built, tmp_path, family):
    check(built, tmp_path, family, 4, rows_of(family, 4))


@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES)
def test_ten_thousand_random_dot_products_of_each_family(built, tmp_path, family):
    """Every row of the family takes part."""
    rows = rows_of(family, 1000)
    check(built, tmp_path, family, -(-10_000 // len(rows)), rows)


def test_every_row_with_public_arithmetic_is_there_and_the_module_is_small(built):
    data = json.loads((built / "catalogue.js").read_text().removeprefix("mpgemm.catalogue = ").rstrip(";\n"))
    assert [row["name"] for row in data["rows"]] == [str(row) for row in ROWS]
    assert (built / "kernel.wasm").stat().st_size < playground_data.LARGEST
