"""Programs on a GPU: lines of steps on plain integers, and kernels of families of one's own on the machine of compiled text."""

from functools import partial

import numpy as np
import pytest
from own_families import EvenShift, GuardedOdd, Nothing

import tensorcore_models as tcm
from tensorcore_models import reference
from tensorcore_models.arithmetic import operations
from tensorcore_models.arithmetic.program import run
from tensorcore_models.arithmetic.recorder import PassRecorder
from tensorcore_models.formats.exact_rounding import shift_right_rounded
from tensorcore_models.gpu.lines import LineBuilder, ProgramLine
from tensorcore_models.gpu.modes import PROGRAMS, plan_of
from tensorcore_models.gpu.products import unit_on
from tensorcore_models.gpu.programs import _Side
from tensorcore_models.kernels import lowered, matrix_bits
from tensorcore_models.kernels.common import add_rounded
from tensorcore_models.kernels.programs import TooWide
from tensorcore_models.probing.edge_operands import EDGES, draw

torch = pytest.importorskip("torch")

import unit_machine  # noqa: E402

OWN = tcm.MatrixEngine(EvenShift(), a_format="e5m2")
#: Units whose lines have every step: signs of masks, floors, every rounding, numbers of 32 bits without a sign and of 64 bits.
UNITS = (
    "cdna3:v_mfma_f32_16x16x8_xf32", "cdna3:v_mfma_f32_16x16x32_fp8_fp8", "hopper:mma.m16n8k8.f16.f16.f16.f16",
    "wormhole:mvmul.m8n16k16.f16.f16.f16.f16.phase3", "arm:bfmmla.m2n2k4.f32.bf16.bf16.f32",
    "riscv:vfwbdot.k8.f32.bf16.bf16.f32", "gaudi3:mme.k8.f32.e4m3.e5m2.f32", "gaudi3:mme.k1.f32.f32.f32.f32",
)  # fmt: skip
_SIZES = {
    "bool": (0, 1), "int32": (-(1 << 31), (1 << 31) - 1), "uint32": (0, (1 << 32) - 1), "int64": (-(1 << 63), (1 << 63) - 1),
}  # fmt: skip


def engine_of(unit: str):
    return tcm.get_instruction(*unit.split(":", 1))


# -- lines on plain integers ---------------------------------------------------------------------------------------------
def _shifted(x, places, negative=0, *, constant, largest):
    rounding, most, some = constant
    places = min(places, most) if most else places
    assert not some or places > 0
    assert not rounding.startswith("rn") or max(1 << places, x + (1 << places >> 1)) <= largest  # what the kernel adds
    return shift_right_rounded(x, places, rounding, bool(negative))


STEPS = {
    "true": lambda x: int(x != 0), "both": lambda x, y: x & y, "either": lambda x, y: x | y, "differ": lambda x, y: x ^ y,
    "choose": lambda c, x, y: x if c else y, "signed": lambda c, x: -x if c else x, "sign": lambda x, m: (x ^ m) - m,
    "magnitude": abs, "floor": lambda x, places: x >> places, "add": lambda x, y: x + y, "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y, "shl": lambda x, y: x << y, "mask": lambda x, y: x & y, "larger": max,
    "less": lambda x, y: int(x < y), "same": lambda x, y: int(x == y),
}  # fmt: skip


def values_of(line: ProgramLine, loaded: dict) -> list[int]:
    """Values of steps; every one of them and its sources are numbers of the step's type, or the kernel's would wrap."""
    values: list[int] = []
    for name, kind, constant, sources in line.steps:
        given = [values[at] for at in sources]
        low, high = _SIZES[kind]
        if (name, constant) in loaded:
            found = loaded[name, constant]
        elif name == "constant":
            found = constant
        elif name == "no":
            found = int(given[0] == 0) if kind == "bool" else ~given[0]
        elif name == "places":
            found = constant + 1 - given[0].bit_length()
        elif name == "shr":
            found = _shifted(*given, constant=constant, largest=high)
        else:
            found = STEPS[name](*given)
        compared = name in ("less", "same", "larger", "magnitude")
        assert all(low <= x <= high for x in (found, *(given if compared else ()))), (name, kind, given, found)
        values.append(found)
    return values


def _drawn(fmt, rng) -> int:
    """An encoding: any, one near 1, or with few bits."""
    code = int(rng.integers(1 << fmt.bits))
    return code & int(rng.integers(1 << fmt.bits)) if rng.integers(3) == 0 else code


def compare(low, regular: bool, seed: int, draws: int) -> None:
    """Values of a unit's lines beside those of its Programs: what is taken of operands, results and seldom conditions."""
    kernel = PROGRAMS.plan(low, PROGRAMS).constants["PROGRAMS"].kernel
    program, rng = kernel.program(regular, False, kernel.step), np.random.default_rng(seed)
    taking = [_Side(side, prepared) for side, prepared in zip("ab", program.prepared, strict=True)]
    packing = [side.line() for side in taking]
    inputs = {x.constant for x in program.operations if x.name == "input"}
    masks = {x for x in inputs if x[0] in "ab" and taking["ab".index(x[0])].is_condition(x[2])}
    loads = {x: ("code", None) if x[0] == "c" else ("load", x) for x in inputs}
    line = LineBuilder(program.operations, loads, masks).line([program.result], program.seldom)
    for _ in range(draws):
        taken = {("c", 0): _drawn(kernel.formats[3], rng)}
        for side, own, fmt in zip(taking, packing, kernel.formats, strict=False):
            for term in range(kernel.step):
                code, scale = _drawn(fmt, rng), _drawn(low.scale_format, rng) if low.scale_format else 0
                values = run(side.prepared.operations, {(side.side, 0): code, (f"scale_{side.side}", 0): scale})
                found = values_of(own, {("code", None): code, ("scale", None): scale})
                outputs = [values[at] for at in side.prepared.outputs]
                assert [found[at] for at in own.results][: len(outputs)] == outputs
                taken |= {(side.side, term, place): value for place, value in enumerate(outputs)}
        expected = run(program.operations, taken)
        found = values_of(line, {loads[x]: -taken[x] if x in masks else taken[x] for x in inputs})
        assert found[line.results[0]] == expected[program.result]
        assert [found[at] for at in line.seldom] == [expected[at] for at in program.seldom]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("regular", [True, False])
def test_lines_compute_what_programs_do(unit, regular):
    compare(lowered(engine_of(unit)), regular, 5, 60)


@pytest.mark.parametrize("rounding", ["rz", "rne", "rna", "rnu", "rnd", "rnz", "rno", "ra", "ru", "rd", "ro"])
@pytest.mark.parametrize("bits", [28, 29, 30, 31, 32, 33, 60, 61])
def test_numbers_of_every_size_are_rounded(bits, rounding):
    z = PassRecorder(False)
    x, places, negative = z.input("a", 0, bits), z.input("b", 0, 7), z.input("c", 0, 1)
    result = z.place(operations.shifted_right(x, places, rounding, operations.same(negative, 1)))
    loads = {("a", 0): ("load", "a"), ("b", 0): ("load", "b"), ("c", 0): ("load", "c")}
    line, rng = LineBuilder(z.operations, loads).line([result]), np.random.default_rng(bits)
    for down in range(128):
        code = (1 << bits) - 1 if down % 3 == 0 else int(rng.integers(1 << bits))
        sign = down % 2
        found = values_of(line, {("load", "a"): code, ("load", "b"): down, ("load", "c"): sign})
        assert found[line.results[0]] == shift_right_rounded(code, down, rounding, bool(sign)), down


@pytest.mark.full
def test_lines_of_every_published_sum():
    lows = {repr(lowered(row)): lowered(row) for row in tcm.list_instructions() if lowered(row).floating}
    compared = 0
    for seed, low in enumerate([*lows.values()][::3]):
        if PROGRAMS.plan(low, PROGRAMS) is not None:
            for regular in (True, False):
                compare(low, regular, seed, 4)
                compared += 1
    assert compared > 100


def test_what_is_wider_than_62_bits_has_no_line():
    low = lowered(engine_of("gaudi2:mme.k16.f32.e4m3.e4m3.f32"))
    assert PROGRAMS.plan(low, PROGRAMS) is None and plan_of(low, "sm_89").mode.function == "aligned_sums"
    with pytest.raises(ValueError, match=r"has no GPU kernel for gfx942\. The CPU kernel lanes of 64 bits"):
        plan_of(low, "gfx942")


def test_lines_of_one_text_are_equal():
    one, two = (LineBuilder((), {}) for _ in range(2))
    assert one.line(()) == two.line(()) and hash(one.line(())) == hash(two.line(()))
    assert issubclass(TooWide, TypeError)


# -- kernels -------------------------------------------------------------------------------------------------------------
def compiling(target: str):
    pytest.importorskip("triton")
    return unit_machine.compiling(target)


def check(engine, machine, p, every=None):
    """The bits of a product on the machine beside the reference's; nothing is left for the CPU."""
    done, found = unit_machine.run(engine, machine, p, every)
    low = lowered(engine)
    assert done.mode == PROGRAMS.name and done.again == ()
    expected = matrix_bits(low, *p) if every is None else promoted(low, p, every)
    assert np.array_equal(found, expected)
    return found


def promoted(low, p, every: int):
    total = p.c
    for start in range(0, p.a.shape[1], every):
        part = p.a[:, start : start + every], p.b[start : start + every]
        total = add_rounded(total, matrix_bits(low, *part, np.zeros_like(p.c), None, None), low.d_format)
    return total


def test_a_family_of_ones_own_is_a_kernel():
    """Two products a pass, so that it compiles in 2 s; one element in plain integers."""
    engine, machine = tcm.MatrixEngine(EvenShift(2, 12), a_format="e5m2", k=2), compiling("sm_90")
    p = draw(np.random.default_rng(3), lowered(engine), "addends", 0, (9, 7, 12))
    found = check(engine, machine, p)
    formats = engine.formats
    one = reference.dot_bits(EvenShift(2, 12), p.a[8].tolist(), p.b[:, 6].tolist(), int(p.c[8, 6]), formats)
    assert found[8, 6] == one


@pytest.mark.full
@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90", "gfx942"])
def test_own_families_at_every_edge(target):
    """Infinities and NaN by the longer Programs, last passes of one to four products, c and d of other formats."""
    machine = compiling(target)
    narrow = tcm.MatrixEngine(EvenShift(4, 11), a_format="fp16", c_format="fp32", d_format="fp16")
    late = tcm.MatrixEngine(GuardedOdd(), a_format="e4m3", c_format="fp16", d_format="fp16")
    for engine in (OWN, narrow, late, tcm.MatrixEngine(Nothing(4), a_format="fp16")):
        for turn, edge in enumerate(EDGES):
            p = draw(np.random.default_rng((11, turn)), lowered(engine), edge, turn, (9, 13, 17 + turn))
            check(engine, machine, p)


@pytest.mark.full
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_chains_of_own_families_are_added_outside(target):
    """The last chain is whole, begins with a short pass, or ends with one."""
    machine = compiling(target)
    for turn, length in enumerate((16, 18, 22, 3)):
        p = draw(np.random.default_rng(12), lowered(OWN), "specials" if turn % 2 else "addends", turn, (9, 7, length))
        check(OWN, machine, p, every=8)


@pytest.mark.full
@pytest.mark.parametrize("target", ["sm_89", "gfx942"])
def test_block_scales_with_fractions(target):
    """Which no mode by hand holds on GPUs with few FP64 units."""
    spec = tcm.FusedDotAdd(4, 25)
    engine = tcm.MatrixEngine(spec, a_format="e4m3fn", scale_format="ue4m3", block_size=8, k=8)
    for turn, edge in enumerate(EDGES[:4]):
        p = draw(np.random.default_rng(13), lowered(engine), edge, turn, (9, 7, 16))
        check(engine, compiling(target), p)


@pytest.mark.full
def test_infinite_operands_leave_other_tiles_alone():
    """A tile with NaN is computed by the longer Program; -0 and payloads of c elsewhere stay what they are."""
    engine, machine = OWN, compiling("sm_90")
    p = draw(np.random.default_rng(14), lowered(engine), "addends", 0, (20, 18, 12))
    p.a[17, 3], p.b[2, 1], p.c[0, 17] = 0x7E, 0xFC, 0xFF812345
    found = check(engine, machine, p)
    assert (found[17] == found[17, 0]).all() and found[17, 0] & 0x7FFFFFFF > 0x7F800000


@pytest.mark.full
def test_tensors_of_ones_own_family(monkeypatch):
    from tensorcore_models.gpu import tensors

    machine = compiling("sm_90")
    gpu = tensors.GPU(machine.target, machine, unit_machine.WARPS, unit_machine.EACH)
    monkeypatch.setattr(tensors, "gpu_of", lambda tensor: gpu)
    monkeypatch.setattr(tensors, "on_gpu", lambda *operands: tensors.is_tensor(operands[0]))
    rng = np.random.default_rng(15)
    a, b = (torch.from_numpy(rng.standard_normal(s)).to(torch.float8_e5m2) for s in ((2, 9, 12), (12, 10)))
    x, y = (tcm.encode(v.float().numpy(), "e5m2") for v in (a, b))
    found = OWN.gemm(a, b).numpy().view(np.uint32)
    assert np.array_equal(found[1], OWN.gemm_bits(x[1], y))


@pytest.mark.full
def test_triton_launches_programs(monkeypatch):
    """Triton's own launches, which tell lines apart by their digests: two families of the same sizes, one after the other."""
    pytest.importorskip("triton")
    from ptx_device import PTXDevice

    from tensorcore_models.gpu import tensors

    device = PTXDevice("sm_90").use(monkeypatch)
    for bits in (12, 5, 12):
        engine = tcm.MatrixEngine(EvenShift(2, bits), a_format="e5m2", k=2)
        low = lowered(engine)
        unit = unit_on(low, device.target, partial(tensors.launch_on, torch.device("cpu")), each=(2, 1), warps=(1, 1))
        p = draw(np.random.default_rng(16), low, "specials", 0, (9, 7, 13))
        done = unit.run(*(unit_machine.tensor_of(x) for x in (p.a, p.b, p.c)))
        assert np.array_equal(done.bits[0].numpy().view(np.uint32), matrix_bits(low, *p))
    assert {name for name, _ in device.runs} == {"pack_program", "program_passes"}


#: A line's step, and another one of the same sources: each is seen in bits of ordinary operands.
CHANGES = {"larger": "add", "sign": "add", "subtract": "add", "multiply": "add", "mask": "either"}


@pytest.mark.full
@pytest.mark.parametrize("name", CHANGES)
def test_another_step_is_noticed(name, monkeypatch):
    put = LineBuilder._put
    monkeypatch.setattr(LineBuilder, "_put", lambda self, n, *rest: put(self, CHANGES[n] if n == name else n, *rest))
    own = EvenShift(2, 13 + [*CHANGES].index(name))  # lines of one family are kept
    engine, machine = tcm.MatrixEngine(own, a_format="e5m2", k=2), compiling("sm_90")
    p = unit_machine.normal(lowered(engine), 3, (9, 7, 12))
    _, found = unit_machine.run(engine, machine, p)
    assert not np.array_equal(found, matrix_bits(lowered(engine), *p))
