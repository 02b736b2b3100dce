"""Arrays from elsewhere: __array__, DLPack, torch tensors, and what is refused."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm


class OnlyArray:
    def __array__(self, dtype=None, copy=None):
        return np.array([1.5, 2.5], np.float32)


class OnlyDLPack:
    """What a library without numpy support offers."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **keywords):
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnADevice(OnlyDLPack):
    def __dlpack_device__(self):
        return (2, 0)  # kDLCUDA

    def __dlpack__(self, **keywords):
        raise BufferError("the array is on a GPU")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_numpy_and_ml_dtypes_arrays_pass_without_a_copy(dtype):
    x = np.ones((2, 3)).astype(dtype)
    assert np.shares_memory(tcm.as_array(x), x) and tcm.as_array(x).dtype == dtype


def test_objects_with_array_or_dlpack():
    assert tcm.as_array(OnlyArray()).tolist() == [1.5, 2.5]
    x = np.arange(4, dtype=np.float32)
    assert tcm.as_array(OnlyDLPack(x)).tolist() == x.tolist()
    assert tcm.as_array(3).dtype.kind == "i" and tcm.as_array([[1.0, 2.0]]).shape == (1, 2)
    assert tcm.encode(OnlyDLPack(x), "fp16").tolist() == [0, 0x3C00, 0x4000, 0x4200]


def test_an_array_on_a_device_is_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"a: .*copy the object to the CPU first"):
        tcm.as_array(OnADevice(np.zeros(2)), "a")


@pytest.mark.parametrize(
    "x", [np.array([object()]), np.array(["1"]), np.array([1j]), np.array([b"1"]), np.array([True]), {"a": 1}]
)
def test_what_is_not_real_numbers_is_refused(x):
    with pytest.raises(TypeError, match=r"a must hold real numbers .*got dtype"):
        tcm.as_array(x, "a")


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    x = torch.tensor([[1.0, -2.5], [3.0, 0.5]])
    for name, dtype in (
        ("float64", np.float64),
        ("float32", np.float32),
        ("float16", np.float16),
        ("bfloat16", ml_dtypes.bfloat16),
        ("float8_e4m3fn", ml_dtypes.float8_e4m3fn),
        ("float8_e5m2", ml_dtypes.float8_e5m2),
    ):
        tensor = x.to(getattr(torch, name))
        array = tcm.as_array(tensor)
        assert array.dtype == dtype and array.astype(float).tolist() == x.tolist()
        assert tcm.as_array(tensor.T).astype(float).tolist() == x.T.tolist()
    assert tcm.as_array(x.requires_grad_()).dtype == np.float32
