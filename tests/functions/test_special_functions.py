"""Special functions of NVIDIA's GPUs: kernel, plain integers, terms for solvers, and what an H100 returned."""

import json
from pathlib import Path

import check_functions
import mpmath
import numpy as np
import pytest
from solvers import needs_solver

import tensorcore_models as tcm
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.passes import Unencodable
from tensorcore_models.functions import Function, angles, sequences
from tensorcore_models.functions.hashes import BLOCKS, block_hash, block_operands

FUNCTIONS = tcm.list_functions("hopper")
NAMES = [function.name for function in FUNCTIONS]
INSTRUCTIONS = [function for function in FUNCTIONS if function.row.kind == "PTX"]
RECORDED = [f for f in INSTRUCTIONS if f.row.recorded.startswith("all")]
DIVISIONS = [f for f in INSTRUCTIONS if f.name.startswith("div.")]
#: Functions that end in IEEE divisions or square roots, which have no terms.
WITHOUT_TERMS = {"div.rn.f32", "sqrt.rn.f32", "rcp.rn.f32", "torch.sigmoid", "torch.silu"}
SAMPLE = json.loads((Path(__file__).parents[1] / "vectors" / "special_functions.json").read_text())
#: torch's functions among the recorded ones, and what computes them here.
TORCH = {
    "exp": "expf", "exp2": "exp2f", "log": "logf", "tanh": "tanhf", "rsqrt": "rsqrtf", "sqrt": "sqrt.rn.f32",
    "reciprocal": "rcp.rn.f32", "sigmoid": "torch.sigmoid", "silu": "torch.silu", "gelu": "torch.gelu",
    "gelu_tanh": "torch.gelu_tanh", "sin": "sinf", "cos": "cosf",
}  # fmt: skip


def operands(function: Function, count: int, seed: int = 0) -> list[np.ndarray]:
    """Random words, numbers of usual size, and every special and end of a range."""
    rng = np.random.default_rng([seed, 60])
    magnitudes = [
        0, 1, 0x3FFFFF, 0x7FFFFF, 0x800000, 0x33000000, 0x3B7FFFFF, 0x3B800000, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001,
        0x40000000, 0x407FFFFF, 0x40FFFFFF, 0x41000000, 0x42B17218, 0x42FC0000, 0x42FFFFFF, 0x43000000, 0x43E00000, 0x47600000,
        0x477FE000, 0x477FF000, 0x47CE477F, 0x47CE4780, 0x57800000, 0x67800000,
        0x6CEA124E, 0x6F79BE45, 0x7E800000,
        0x7E800001, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF,
    ]  # fmt: skip
    special = np.array(magnitudes, np.uint32)
    usual = (rng.standard_normal(count) * 4).astype(np.float32).view(np.uint32)
    words = np.concatenate([special, special | 0x80000000, rng.integers(0, 1 << 32, count, np.uint32), usual])
    narrow = function.operand_dtype == np.uint16
    each = [words] + [rng.permutation(words) for _ in function.row.operands[1:]]
    return [(x >> 16).astype(np.uint16) if narrow else x for x in each]


def test_two_over_pi():
    with mpmath.workprec(300):
        assert int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** 192)) == angles.TWO_OVER_PI


@pytest.mark.smoke
@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_kernel_and_plain_integers_agree(function):
    given = operands(function, 20)
    found = function.bits(*given)
    exact = [function.exact_bits(*(int(x[i]) for x in given)) for i in range(found.size)]
    wrong = [[hex(x[i]) for x in given] + [hex(e)] for i, e in enumerate(exact) if e != found[i]]
    assert not wrong, wrong[:5]


@pytest.mark.sweep(8)
@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_terms_agree(function):
    given = operands(function, 4, seed=1)
    variables = [t.variable(f"x{i}", 8 * x.itemsize) for i, x in enumerate(given)]
    if function.name in WITHOUT_TERMS:
        with pytest.raises(Unencodable):
            function.terms(*variables)
        return
    term, found = function.terms(*variables), function.bits(*given)
    for i in range(0, found.size, 3):
        values = {f"x{j}": int(x[i]) for j, x in enumerate(given)}
        assert t.evaluate([term], values) == [found[i]], [hex(x) for x in values.values()]


@needs_solver
def test_a_solver_finds_an_operand():
    from tensorcore_models.probing.formal.solvers import solve

    x = t.variable("x", 32)
    function = tcm.get_function("hopper", "rcp.approx.ftz.f32")
    wanted = int(function.bits(0x3FC12345))
    answer = solve([t.equal(function.terms(x), t.constant(wanted, 32))], [x])
    assert int(function.bits(answer.model["x"])) == wanted


@pytest.mark.parametrize("isa", tcm.available_isas())
def test_instruction_sets_and_threads_change_no_bit(isa):
    tcm.set_isa("baseline")
    expected = [f.bits(*operands(f, 40000)) for f in FUNCTIONS]
    tcm.set_isa(isa)
    tcm.set_num_threads(2)
    try:
        for function, bits in zip(FUNCTIONS, expected, strict=True):
            assert (function.bits(*operands(function, 40000)) == bits).all(), function.name
    finally:
        tcm.set_isa(None)
        tcm.set_num_threads(None)


def segment_ends(name: str) -> np.ndarray:
    """Codes at the first operand of each segment of an instruction that is the unit alone, the one before and the one after."""
    binades, _ = check_functions.BINADES[name]
    if name.startswith(("sin", "cos")):
        first = (np.arange(1, 512) * (np.pi / 128)).astype(np.float32).view(np.uint32)
    elif name.startswith("ex2"):  # segments are those of the fraction of x: in [1, 2) and [-2, -1)
        first = np.concatenate(
            [np.uint32(b) + (np.arange(64, dtype=np.uint32) << 17) for b in (0x3F800000, 0xBF800000)]
        )
    else:
        first = np.concatenate([np.uint32(b << 23) + (np.arange(128, dtype=np.uint32) << 16) for b in binades])
    return np.concatenate([first - np.uint32(1), first, first + np.uint32(1)])


@pytest.mark.parametrize("name", check_functions.BINADES)
def test_every_instruction_set_at_the_ends_of_segments(name):
    """Kernels for each set beside plain integers, where another row of the table begins."""
    function, codes = tcm.get_function("hopper", name), segment_ends(name)
    exact = np.array([function.exact_bits(int(x)) for x in codes], np.uint32)
    try:
        for isa in tcm.available_isas():
            tcm.set_isa(isa)
            wrong = codes[function.bits(codes) != exact]
            assert not wrong.size, (isa, [hex(x) for x in wrong[:5]])
    finally:
        tcm.set_isa(None)


@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_operands_of_every_kind_of_array(function):
    """Views, other byte orders and integer types, read-only and single ones, empty ones; operands stay as they are."""
    given = operands(function, 8)
    wanted, kept = function.bits(*given), [x.copy() for x in given]
    swapped = [x.astype(x.dtype.newbyteorder()) for x in given]
    strided = [np.repeat(x, 2)[::2] for x in given]
    locked = [x.copy() for x in given]
    for x in locked:
        x.flags.writeable = False
    for variant in (swapped, strided, locked, [x.astype(np.int64) for x in given], [x.tolist() for x in given]):
        assert (function.bits(*variant) == wanted).all()
    assert (function.bits(*(x[::-1] for x in given)) == wanted[::-1]).all()
    square = [np.asfortranarray(x[:6].reshape(2, 3)) for x in given]
    assert (function.bits(*square) == wanted[:6].reshape(2, 3)).all()
    single = function.bits(*(x[0] for x in given))
    assert single.shape == () and single == wanted[0]
    for empty in (np.zeros((0, 3), given[0].dtype), np.zeros((2, 0), np.int64)):
        assert function.bits(*[empty] * len(given)).shape == empty.shape
    assert function.bits(*[[]] * len(given)).shape == (0,)
    assert all((x == y).all() for x, y in zip(given, kept, strict=True)) and wanted.dtype == function.result_dtype


# -- what an H100 returned -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SAMPLE["binades"])
def test_whole_binades_as_an_h100_returned_them(name):
    """Every segment of every table: sums of block hashes."""
    function = tcm.get_function("hopper", name)
    step = check_functions.BINADES[name][1]
    for binade, expected in SAMPLE["binades"][name].items():
        blocks = check_functions.binade_blocks(int(binade, 16), step)
        total = sum(block_hash(function.bits(block_operands(block))) for block in blocks) % (1 << 64)
        assert f"{total:#018x}" == expected, binade


@pytest.mark.parametrize("function", RECORDED, ids=[f.name for f in RECORDED])
def test_blocks_as_an_h100_returned_them(function):
    sample = SAMPLE["blocks"][check_functions.recorded_name(function)]
    hashes = {int(block, 16): int(expected, 16) for block, expected in sample.items()}
    assert check_functions.differing_blocks(function, hashes, list(hashes)) == []


@pytest.mark.parametrize("function", DIVISIONS, ids=[f.name for f in DIVISIONS])
def test_divisions_as_an_h100_returned_them(function):
    pairs = {name: np.array(values, np.uint32) for name, values in SAMPLE["pairs"].items()}
    assert (function.bits(pairs["two.a"], pairs["two.b"]) == pairs[function.name]).all()


@pytest.fixture(scope="module")
def recordings(shared):
    """The recorded block hashes and pairs of divisions."""
    with np.load(shared / "hardware_vectors" / "h100" / "special_functions" / "mufu.npz") as found:
        yield {name: found[name] for name in found.files}


@pytest.mark.parametrize("function", RECORDED, ids=[f.name for f in RECORDED])
def test_a_spread_of_recorded_blocks(recordings, function):
    hashes = recordings[f"hash/{check_functions.recorded_name(function)}"]
    assert check_functions.differing_blocks(function, hashes, range(17, BLOCKS, BLOCKS // 64)) == []


@pytest.mark.slow
@pytest.mark.parametrize("function", RECORDED, ids=[f.name for f in RECORDED])
def test_all_recorded_blocks(recordings, function):
    hashes = recordings[f"hash/{check_functions.recorded_name(function)}"]
    assert check_functions.differing_blocks(function, hashes, range(BLOCKS)) == []


@pytest.mark.parametrize("function", DIVISIONS, ids=[f.name for f in DIVISIONS])
def test_all_recorded_divisions(recordings, function):
    found = function.bits(recordings["small/two.a"], recordings["small/two.b"])
    assert int((found != recordings[f"small/{function.name}"]).sum()) == 0


@pytest.mark.parametrize("name", TORCH)
def test_torch_functions_as_an_h100_returned_them(shared, name):
    """All bf16 numbers, and 65,536 normal FP32 numbers, standard deviation 4."""
    function = tcm.get_function("hopper", TORCH[name])
    to_bf16 = tcm.get_function("hopper", "cvt.rn.bf16.f32")
    wide = (np.random.default_rng(11).standard_normal(1 << 16) * 4).astype(np.float32).view(np.uint32)
    every = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    with np.load(shared / "hardware_vectors" / "h100" / "libraries" / "pointwise.npz") as recorded:
        assert int((function.bits(wide) != recorded[f"fp32/{name}"].view(np.uint32)).sum()) == 0
        narrow = to_bf16.bits(function.bits(every))
        assert int((narrow != recorded[f"bf16/{name}"].view(np.uint16)).sum()) == 0


#: Units in the last place by which the CUDA guide lets results differ from the correctly rounded ones.
CUDA_GUIDE = {"sinf": 2, "cosf": 2, "tanf": 4}


@pytest.mark.parametrize("name", CUDA_GUIDE)
def test_sines_of_large_angles_are_within_the_bound_of_the_cuda_guide(name):
    """From 105615 on, where CUDA multiplies by 2/pi; 0x6f79be45 is nearest of all to a multiple of pi/2."""
    codes = np.random.default_rng(60).integers(0x47CE4780, 0x7F800000, 300, np.uint32)
    codes = np.append(codes, np.uint32(0x6F79BE45))
    found = tcm.get_function("hopper", name).bits(codes).view(np.float32)
    with mpmath.workprec(300):
        exact = [getattr(mpmath, name[:-1])(mpmath.mpf(float(x))) for x in codes.view(np.float32)]
    nearest = np.array([float(x) for x in exact]).astype(np.float32)
    off = np.abs(found.view(np.int32).astype(np.int64) - nearest.view(np.int32))
    assert off.max() <= CUDA_GUIDE[name], [hex(x) for x in codes[off > CUDA_GUIDE[name]]]


# -- values and words ----------------------------------------------------------------------------------------------------
def test_values():
    assert tcm.get_function("h100", "sqrt.approx.f32").values(4.0) == 2.0
    assert tcm.get_function("h100", "ex2.approx.f16x2").values([0.5, -1.0]).tolist() == [1.4140625, 0.5]
    assert tcm.get_function("h100", "rcp.approx.ftz.f64").values(4.0).dtype == np.float64
    assert tcm.get_function("h100", "cvt.rn.bf16.f32").values([1.0 + 2.0**-9]).tolist() == [1.0]
    pairs = tcm.get_function("h100", "cvt.rn.satfinite.e4m3x2.f32")
    assert pairs.values([1e6, -3.0], [0.5, 2.0]).tolist() == [[448.0, 0.5], [-3.0, 2.0]]
    assert [hex(x) for x in pairs.bits([0x3F800000], [0x40000000])] == ["0x3840"]


def test_packed_words_hold_two_numbers():
    packed, alone = (tcm.get_function("hopper", f"tanh.approx.f16{x}") for x in ("x2", ""))
    words = np.arange(1 << 16, dtype=np.uint32) * np.uint32(65537)
    halves = alone.bits(np.arange(1 << 16, dtype=np.uint16)).astype(np.uint32)
    assert (packed.bits(words) == halves * np.uint32(65537)).all()


def test_operands_are_kept_and_broadcast():
    x = np.arange(24, dtype=np.int64).reshape(2, 3, 4)[:, ::-1] + 0x3F800000
    before = x.copy()
    quotient = tcm.get_function("hopper", "div.full.f32")
    assert quotient.bits(x, 0x40000000).shape == x.shape
    assert (x == before).all()
    assert quotient.bits(np.zeros((0, 3), np.uint32), 1).shape == (0, 3)


# -- rows ----------------------------------------------------------------------------------------------------------------
def test_architectures_have_what_ptx_gives_them():
    names = {
        arch: {f.name for f in tcm.list_functions(arch)} for arch in ("volta", "turing", "ampere", "ada", "hopper")
    }
    assert names["hopper"] == {f.name for f in tcm.list_functions("b200")}
    assert "tanh.approx.f32" not in names["volta"] and "ex2.approx.f16x2" not in names["volta"]
    assert {"tanh.approx.f32", "ex2.approx.f16"} <= names["turing"] and "cvt.rn.bf16.f32" not in names["turing"]
    assert "cvt.rna.tf32.f32" in names["ampere"] and "cvt.rn.satfinite.e4m3x2.f32" not in names["ampere"]
    assert "cvt.rn.satfinite.e4m3x2.f32" in names["ada"] and "ex2.approx.ftz.bf16x2" not in names["ada"]


def test_evidence_says_what_was_recorded():
    assert "recorded on an H100" in tcm.get_function("h100", "ex2.approx.ftz.f32").evidence
    assert tcm.get_function("volta", "ex2.approx.ftz.f32").evidence.startswith("inferred from the H100 (")
    assert tcm.get_function("hopper", "tanh.approx.bf16").evidence.startswith("inferred")
    text = str(tcm.get_function("hopper:ex2.approx.ftz.f32"))
    assert "error:" in text and "evidence:" in text


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tcm.get_function("volta", "tanh.approx.f32"), ValueError, "not on volta; it is on turing.*ex2.approx.f32"),
        (lambda: tcm.get_function("hopper", "ex2"), ValueError, "unknown function 'ex2' of hopper"),
        (lambda: tcm.get_function("hopper"), ValueError, "arch:name"),
        (lambda: tcm.get_function("mi300x", "ex2.approx.f32"), ValueError, "special functions of mi300x are not "
        "modelled"),
        (lambda: tcm.list_functions("nothing"), ValueError, "unknown architecture"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").bits([1 << 32]), ValueError, "must lie in"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").bits([-1]), ValueError, "must lie in"),
        (lambda: tcm.get_function("h100", "ex2.approx.f16").bits([1 << 16]), ValueError, "must lie in"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").bits([1 << 70]), TypeError, "must hold real numbers"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").bits([1.0]), TypeError, "must hold encodings"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").bits([1], [2]), ValueError, "takes 1 operands \\(x\\), got 2"),
        (lambda: tcm.get_function("h100", "div.full.f32").bits([1, 2, 3], [1, 2]), ValueError, "shapes that broadcast"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").exact_bits([1, 2]), TypeError, "expected one number"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").exact_bits(1.0), TypeError, "must hold encodings"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").steps(-1), ValueError, "must lie in"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").steps(1 << 32), ValueError, "must lie in"),
        (lambda: tcm.get_function("h100", "ex2.approx.f16x2").steps(1 << 16), ValueError, "must lie in"),
        (lambda: tcm.get_function("h100", "ex2.approx.f32").steps(1.5), TypeError, "must hold encodings"),
        (lambda: tcm.get_function("h100", "div.full.f32").steps(1), ValueError, "takes 2 operands \\(x, y\\), got 1"),
        (lambda: tcm.get_function(None), TypeError, "must be strings, got NoneType"),
        (lambda: tcm.get_function("h100", 5), TypeError, "must be strings, got int"),
        (lambda: tcm.get_function("h100", "div.full.f32").bits([1]), ValueError, "takes 2 operands \\(x, y\\), got 1"),
        (lambda: tcm.get_function("h100", "tanh.approx.f16").values([0.1]), ValueError, "holds values that fp16 "
        "cannot represent"),
        (lambda: sequences.parse("ex3(x)"), ValueError, "ex3 with 1 operands"),
        (lambda: sequences.parse("x + unknown"), ValueError, "is not an expression"),
        (lambda: sequences.parse("y = x"), ValueError, "must end in an expression"),
    ],
)  # fmt: skip
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
