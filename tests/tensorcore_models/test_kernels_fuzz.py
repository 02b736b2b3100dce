"""Random shapes, types and strides through the public functions: a result or a ValueError or TypeError, never a crash."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm

DTYPES = ("u1", "u2", "u4", "u8", ">u2", "i1", "i4", "f2", "f4", "f8", "c8", "?", "S3", "O", "M8[s]")
INSTRUCTIONS = (
    "hopper:mma.m16n8k16.f32.f16.f16.f32",
    "ampere:mma.m16n8k8.f32.tf32.tf32.f32",
    "ampere:mma.m8n8k4.f64.f64.f64.f64",
)


@st.composite
def arrays(draw):
    shape = tuple(draw(st.lists(st.integers(0, 18), min_size=0, max_size=4)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    if dtype.hasobject:
        return np.full(shape, None, dtype)
    steps = tuple(draw(st.sampled_from((1, 1, 2, -1, -3))) for _ in shape)
    big = np.zeros(tuple(abs(step) * n for step, n in zip(steps, shape, strict=True)), dtype)
    raw = np.random.default_rng(draw(st.integers(0, 9))).integers(0, 256, big.nbytes, np.uint8)
    big = raw.view(dtype).reshape(big.shape) if big.nbytes else big
    view = big[(..., *(slice(None, None, step) for step in steps))]
    if draw(st.booleans()):
        view = view.T
    view.flags.writeable = draw(st.booleans()) and view.flags.writeable
    return view


FUNCTIONS = ("gemm_bits", "mma_bits", "gemm")


@given(st.sampled_from(INSTRUCTIONS), arrays(), arrays(), arrays() | st.none(), st.sampled_from(FUNCTIONS))
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_anything_in_a_result_or_a_clear_error_out(name, a, b, c, function):
    ins = tcm.get_instruction(name)
    before = [None if x is None else x.tobytes() for x in (a, b, c)]
    try:
        d = getattr(ins, function)(a, b, c)
    except (ValueError, TypeError) as error:
        assert str(error)
    else:
        assert d.ndim >= 2
    assert [None if x is None else x.tobytes() for x in (a, b, c)] == before


@given(st.sampled_from(INSTRUCTIONS), st.integers(0, 40), st.integers(0, 70), st.integers(0, 40), st.data())
@settings(max_examples=150)
def test_views_give_the_bits_of_their_copies(name, m, k, n, data):
    ins = tcm.get_instruction(name)
    rng = np.random.default_rng(m * 10_000 + k * 100 + n)
    matrices = []
    for shape, fmt in zip(((m, k), (k, n), (m, n)), ins.formats, strict=False):
        size = fmt.container.itemsize
        rows, columns = (data.draw(st.sampled_from((1, 2, -1))) for _ in range(2))
        big = rng.integers(0, 256, (shape[0] * abs(rows), shape[1] * abs(columns) * size), np.uint8).view(fmt.container)
        view = big[::rows, ::columns]
        matrices.append(np.asfortranarray(view) if data.draw(st.booleans()) else view)
    copies = [np.ascontiguousarray(x) for x in matrices]
    assert np.array_equal(ins.gemm_bits(*matrices), ins.gemm_bits(*copies))


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_encodings_never_touch_floats(name):
    """NaN payloads and signed zeros of c survive only as the instruction says: the NaN result has one encoding."""
    ins = tcm.get_instruction(name)
    a_type, b_type, c_type = (f.container for f in ins.formats[:3])
    c = np.full((ins.m, ins.n), ins.formats[2].nan_bits | 1, c_type)
    d = ins.mma_bits(np.zeros((ins.m, ins.k), a_type), np.zeros((ins.k, ins.n), b_type), c)
    assert len(np.unique(d)) == 1
    assert ins.formats[3].decode_exact(int(d[0, 0])).kind == "nan"
