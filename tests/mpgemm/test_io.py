"""Matrix files: what is read is what was written, and bad files fail with one clear line."""

import os
import stat
import sys
import types

import ml_dtypes
import numpy as np
import pytest

from mpgemm.experiments.cases import file_cases
from mpgemm.inputs.files import check_matrix, read_matrix, read_stack, write_matrix
from tensorcore_models.files import atomic_writer, write_text


@pytest.fixture
def matrix():
    return np.random.default_rng(5).standard_normal((3, 4))


@pytest.mark.parametrize("suffix", [".npy", ".mtx"])
def test_round_trip(tmp_path, matrix, suffix):
    path = tmp_path / f"x{suffix}"
    write_matrix(path, matrix)
    back = read_matrix(path)
    assert back.dtype == np.float64
    np.testing.assert_array_equal(back, matrix)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", ">f8", "<f2", "<i4"])
def test_npy_types_and_byte_orders(tmp_path, dtype):
    path = tmp_path / "x.npy"
    values = np.arange(6).reshape(2, 3).astype(dtype)
    np.save(path, values)
    back = read_matrix(path)
    assert back.dtype.isnative
    assert back.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(back, values)


def test_npz_by_name(tmp_path, matrix):
    path = tmp_path / "x.npz"
    np.savez(path, a=matrix, b=2 * matrix)
    np.testing.assert_array_equal(read_matrix(path, "b"), 2 * matrix)
    with pytest.raises(ValueError, match=r"holds 2 arrays, expected one: name one of a, b"):
        read_matrix(path)
    with pytest.raises(ValueError, match=r"no array 'c': name one of a, b"):
        read_matrix(path, "c")
    np.savez_compressed(path, only=matrix)
    np.testing.assert_array_equal(read_matrix(path), matrix)


def test_safetensors_by_name(tmp_path, matrix):
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "x.safetensors"
    values = {"w": matrix.astype(np.float32), "q": matrix.astype(ml_dtypes.bfloat16)}
    safetensors_numpy.save_file(values, path)
    for name, expected in values.items():
        back = read_matrix(path, name)
        assert back.dtype == expected.dtype
        np.testing.assert_array_equal(back, expected)
    with pytest.raises(ValueError, match="no array 'v': name one of q, w"):
        read_matrix(path, "v")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="cannot be read as a .safetensors file"):
        read_matrix(path, "w")


MTX = {
    "coordinate": (
        "%%MatrixMarket matrix coordinate real general\n% a comment\n\n2 3 3\n1 1 1.5\n2 3 -2e0\n2 3 1\n",
        [[1.5, 0, 0], [0, 0, -1.0]],  # an entry given twice is added
    ),
    "pattern": ("%%MatrixMarket MATRIX coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n", [[1, 1], [1, 0]]),
    "skew": ("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 7\n", [[0, -7], [7, 0]]),
    "array": ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", [[1, 3], [2, 4]]),
    "symmetric array": ("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n", [[1, 2], [2, 3]]),
    "skew array": ("%%MatrixMarket matrix array real skew-symmetric\n2 2\n5\n", [[0, -5], [5, 0]]),
    "empty": ("%%MatrixMarket matrix coordinate real general\n0 3 0\n", np.zeros((0, 3))),
}


@pytest.mark.parametrize("name", MTX)
def test_matrix_market(tmp_path, name):
    text, expected = MTX[name]
    path = tmp_path / "x.mtx"
    path.write_text(text)
    np.testing.assert_array_equal(read_matrix(path), np.array(expected, float))


def test_files_for_scipy_name_the_extra_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    path = tmp_path / "x.mtx"
    write_matrix(path, np.ones((2, 2)))
    with pytest.raises(
        ValueError, match=r"a Matrix Market file needs SciPy, which is not installed: pip install 'mpgemm\[sparse\]'"
    ):
        read_matrix(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as a Matrix Market file"),
        (
            "%%MatrixMarket matrix coordinate complex general\n1 1 0\n",
            "holds a complex general matrix, expected real numbers",
        ),
        (
            "%%MatrixMarket matrix array real hermitian\n1 1\n1\n",
            "holds a real hermitian matrix, expected real numbers",
        ),
        ("%%MatrixMarket matrix array real general\n", "cannot be read as a Matrix Market file"),
        ("%%MatrixMarket matrix array real general\n2 x\n", "Invalid integer"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", "Truncated"),
        ("%%MatrixMarket matrix array real symmetric\n2 3\n1\n", "it is 2 x 3, but a symmetric matrix must be square"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", "Truncated"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", "Row index out of bounds"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1\n", "Invalid floating-point value"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 z\n", "Invalid floating-point value"),
        ("%%MatrixMarket matrix array real general\n1 2\n1_0 2\n", "Truncated"),
    ],
)
def test_bad_matrix_market(tmp_path, text, message):
    path = tmp_path / "x.mtx"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as info:
        read_matrix(path)
    assert str(path) in str(info.value)


def test_truncated_and_foreign_files(tmp_path, matrix):
    npy, npz = tmp_path / "x.npy", tmp_path / "x.npz"
    np.save(npy, matrix)
    np.savez(npz, a=matrix)
    for path in (npy, npz):
        whole = path.read_bytes()
        for size in (0, 5, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            with pytest.raises(ValueError, match=r"cannot be read as a \.np"):
                read_matrix(path)
    binary = tmp_path / "x.mtx"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="cannot be read as a Matrix Market file"):
        read_matrix(binary)


def test_missing_file_and_unknown_suffix(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_matrix(tmp_path / "x.npy")
    with pytest.raises(
        ValueError,
        match=r"the suffix '.txt', expected the suffix of a matrix format: .npy, .npz, .mtx, .csv, .safetensors",
    ):
        read_matrix(tmp_path / "x.txt")
    (tmp_path / "y.npy").touch()
    with pytest.raises(ValueError, match="holds one matrix"):
        read_matrix(tmp_path / "y.npy", "a")


def test_object_arrays_are_refused_unread(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([[None]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot be read as a .npy file of numbers"):
        read_matrix(path)


@pytest.mark.parametrize("values", [[["a"]], [[1j]], [[True]], np.array([[None]], dtype=object)])
def test_elements_that_are_no_real_numbers(values):
    with pytest.raises(TypeError, match="real numbers"):
        check_matrix(np.asarray(values), "x")


@pytest.mark.parametrize("shape", [(), (3,), (1, 2, 3)])
def test_wrong_rank(shape):
    with pytest.raises(ValueError, match="2 dimensions"):
        check_matrix(np.zeros(shape), "x")


def test_a_failing_writer_leaves_the_old_file_and_no_debris(tmp_path):
    path = tmp_path / "sub" / "x.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), atomic_writer(path) as stream:
        stream.write(b"new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["x.txt"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_files_get_the_usual_mode(tmp_path):
    old = os.umask(0o022)
    try:
        write_text(tmp_path / "x", "")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o644


def test_write_matrix_refuses_other_suffixes(tmp_path):
    with pytest.raises(ValueError, match=r"expected .npy or .mtx"):
        write_matrix(tmp_path / "x.csv", np.zeros((1, 1)))


# -- more formats --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",2,3\n4,5,6\n", "line 1, cell 1 is ''"),
        ("1x,2,3\n4,5,6\n", "line 1, cell 1 is '1x'"),
        ("1,2\n3,1_0\n", "line 2, cell 2 is '1_0'"),
        ("a,b\n\n1,\n", "line 3, cell 2 is ''"),
    ],
)
def test_no_row_of_a_csv_file_is_dropped(tmp_path, text, message):
    """A first row with one cell that is no number is not a heading; Python's 1_0 is no number of a file."""
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_matrix(tmp_path / "x.csv")


def test_csv(tmp_path, matrix):
    path = tmp_path / "x.csv"
    np.savetxt(path, matrix, delimiter=",", fmt="%.17g")
    np.testing.assert_array_equal(read_matrix(path), matrix)
    path.write_text("first, second\r\n1, 2.5\r\n-3e-4, inf\r\n", newline="")
    np.testing.assert_array_equal(read_matrix(path), [[1, 2.5], [-3e-4, np.inf]])
    for text, message in (("", "holds no numbers"), ("1,2\n3\n", r"rows have 1 or 2 numbers"), ("1,2\n3,x\n", "'x'")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_matrix(path)
    with pytest.raises(ValueError, match="holds one matrix"):
        read_matrix(path, "a")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
def test_sparse_npz(tmp_path, kind):
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.zeros((4, 6), np.float32)
    dense[1, 2], dense[3, 5], dense[0, 0] = 1.5, -2, 7
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_matrix(dense).asformat(kind))
    back = read_matrix(tmp_path / "x.npz")
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, dense)


def test_a_damaged_sparse_matrix_is_one_line(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    path = tmp_path / "x.npz"
    good = sparse.csr_matrix(np.eye(3))
    np.savez(path, format=b"csr", shape=(3, 3), data=good.data, indices=good.indices + 100, indptr=good.indptr)
    with pytest.raises(ValueError, match="cannot be read as a .npz file"):
        read_matrix(path)


class Tensor:
    """What the reader uses of a torch.Tensor."""

    device, is_sparse, layout = types.SimpleNamespace(type="cpu"), False, "strided"

    def __init__(self, array, dtype="torch.float64"):
        self.array, self.dtype = array, dtype

    def detach(self):
        return self

    contiguous = resolve_conj = resolve_neg = detach

    def element_size(self):
        return self.array.itemsize

    def view(self, dtype):
        return Tensor(self.array.view(dtype))

    def numpy(self):
        return self.array


@pytest.fixture
def torch(monkeypatch):
    """torch.load and the types that the reader asks for; what is loaded is set by the test."""
    module = types.SimpleNamespace(
        Tensor=Tensor, strided="strided", int16=np.int16, uint8=np.uint8, calls=[], loaded=None
    )

    def load(path, **options):
        module.calls.append(options)
        if isinstance(module.loaded, Exception):
            raise module.loaded
        return module.loaded

    module.load = load
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_pt(tmp_path, matrix, torch):
    path = tmp_path / "x.pt"
    path.touch()
    torch.loaded = Tensor(matrix)
    np.testing.assert_array_equal(read_matrix(path), matrix)
    assert torch.calls == [{"map_location": "cpu", "weights_only": True}]
    narrow = matrix.astype(ml_dtypes.bfloat16)
    torch.loaded = {"layer": {"weight": Tensor(matrix), "bias": Tensor(narrow, "torch.bfloat16")}, "step": 3}
    np.testing.assert_array_equal(read_matrix(path, "layer.weight"), matrix)
    back = read_matrix(path, "layer.bias")
    assert back.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(back, narrow)
    with pytest.raises(ValueError, match=r"holds 2 arrays, expected one: name one of layer.bias, layer.weight"):
        read_matrix(path)
    torch.loaded = RuntimeError("Weights only load failed:\nunsafe")
    with pytest.raises(
        ValueError, match=r"cannot be read as a .pt file of tensors \(Weights only load failed: unsafe\)"
    ):
        read_matrix(path)


def test_fp8_from_pt(tmp_path, torch):
    (tmp_path / "x.pt").touch()
    values = np.arange(6.0).reshape(2, 3).astype(ml_dtypes.float8_e4m3fn)
    torch.loaded = {"w": Tensor(values, "torch.float8_e4m3fn"), "v": Tensor(values, "torch.float8_e4m3fn")}
    for back in (read_matrix(tmp_path / "x.pt", "w"), read_matrix(f"{tmp_path}/x.pt:w")):
        assert back.dtype == values.dtype and back.tobytes() == values.tobytes()


def test_names_behind_paths(tmp_path, matrix):
    np.savez(tmp_path / "x.npz", **{"a": matrix, "b.c": 2 * matrix})
    np.testing.assert_array_equal(read_matrix(f"{tmp_path}/x.npz:b.c"), 2 * matrix)
    with pytest.raises(ValueError, match="no array 'd': name one of a, b.c"):
        read_matrix(f"{tmp_path}/x.npz:d")
    with pytest.raises(FileNotFoundError, match="y.npz: no such file"):
        read_matrix(f"{tmp_path}/y.npz:a")


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e8m0fnu", "float4_e2m1fn"])
def test_types_that_numpy_does_not_name_in_files(tmp_path, name):
    values = np.array([[1.0, 2.0], [0.5, 4.0]]).astype(getattr(ml_dtypes, name))
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", x=values)
    for path in (tmp_path / "x.npy", f"{tmp_path}/x.npz:x"):
        with pytest.raises(TypeError, match=r"\|V[12], which NumPy writes for ml_dtypes'.*--operands"):
            read_matrix(path)
        back = read_matrix(path, encodings=True)
        assert back.dtype == f"u{values.itemsize}" and back.tobytes() == values.tobytes()


def test_e5m2_is_known_by_its_own_name(tmp_path):
    values = np.array([[1.0, 2.0], [0.5, 4.0]]).astype(ml_dtypes.float8_e5m2)
    np.save(tmp_path / "x.npy", values)
    assert read_matrix(tmp_path / "x.npy").dtype == values.dtype


def test_pt_without_torch_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "x.pt").touch()
    with pytest.raises(ValueError, match="needs PyTorch, .* save the tensor as .safetensors"):
        read_matrix(tmp_path / "x.pt")


def test_stacks(tmp_path, matrix):
    stack = np.stack([matrix, 2 * matrix])
    np.save(tmp_path / "s.npy", stack)
    np.save(tmp_path / "four.npy", stack[None])
    np.save(tmp_path / "v.npy", np.ones(3))
    np.testing.assert_array_equal(read_stack(tmp_path / "s.npy"), stack)
    np.testing.assert_array_equal(read_stack(tmp_path / "four.npy"), stack)
    with pytest.raises(ValueError, match=r"has shape \(3,\), expected 2 dimensions"):
        read_stack(tmp_path / "v.npy")
    with pytest.raises(ValueError, match="2 dimensions"):
        read_matrix(tmp_path / "s.npy")


def test_cases_of_stacks_and_transposed_files(tmp_path, matrix):
    a, w = tmp_path / "a.npy", tmp_path / "w.npy"
    np.save(a, np.stack([matrix, 2 * matrix]))
    np.save(w, np.arange(8.0).reshape(2, 4))
    first, second = file_cases(a, w, transpose_b=True)
    assert (first.label, second.label) == ("a.npy[0] x w.npy", "a.npy[1] x w.npy")
    np.testing.assert_array_equal(second.load()[0], 2 * matrix)
    np.testing.assert_array_equal(second.load()[1], np.arange(8.0).reshape(2, 4).T)
    with pytest.raises(ValueError, match="--transpose-b reads a B that is stored transposed"):
        file_cases(a, w)
    np.save(w, np.zeros((3, 4, 2)))
    with pytest.raises(ValueError, match="2 matrices and .*w.npy holds 3; expected equal numbers"):
        file_cases(a, w)
