"""Reads and writes matrices in files.

The formats are NumPy's .npy and .npz (with SciPy's sparse matrices), Matrix Market's .mtx (which SciPy reads), .csv,
.safetensors, and PyTorch's .pt. No pickle is ever executed: .pt goes through ``torch.load(weights_only=True)``. A name after
the path chooses one of several arrays: ``layers.safetensors:lm_head.weight``.

:func:`read_matrix` returns a two-dimensional numeric array in native byte order, or raises an error of one line. Files are
written atomically (:mod:`tensorcore_models.files`).
"""

import csv
import importlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import ml_dtypes
import numpy as np

import tensorcore_models as tcm
from mpgemm.inputs.sizes import check_fits
from tensorcore_models.files import atomic_writer, write_text
from tensorcore_models.formats.rounding import source_array


def check_matrix(array: object, name: str) -> np.ndarray:
    """Return `array` as a real matrix in native byte order, without a copy where possible.

    Raises TypeError, ValueError with `name` if `array` is no real matrix.
    """
    array = tcm.as_array(array, name)
    _check_matrix_shape(array.shape, name)
    return _native(array)


def _check_matrix_shape(shape: Sequence[int], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(f"{name} has shape {tuple(shape)}, expected a matrix of 2 dimensions: give one matrix")


def _check_stack_shape(shape: Sequence[int], name: str) -> None:
    if len(shape) < 2:
        raise ValueError(
            f"{name} has shape {tuple(shape)}, expected 2 dimensions for a matrix, more for a stack of matrices"
        )


def _native(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def read_matrix(path: str | os.PathLike, name: str | None = None, *, encodings: bool = False) -> np.ndarray:
    """Read one matrix.

    path: File whose suffix says its format: .npy, .npz, .mtx, .csv, .safetensors, .pt or .pth. ":NAME" may follow it.
    name: Name of the array in an .npz, .safetensors or .pt file; needed if the file holds several.
    encodings: Whether the caller knows the format of the elements. Elements whose type NumPy does not name in files (|V1, which
        it writes for ml_dtypes' types) are then read as unsigned integers.
    Returns: Array of two dimensions in native byte order, with the element type of the file (float64 from .mtx).
    Raises FileNotFoundError if the file does not exist.
    Raises ValueError if the suffix is unknown, the file truncated or malformed, the name missing or unknown, or the
        array is no matrix.
    Raises TypeError if the elements are not real numbers.
    """
    return check_matrix(_read(path, name, _Wanted(_check_matrix_shape, encodings)), str(path))


def read_stack(path: str | os.PathLike, name: str | None = None) -> np.ndarray:
    """Read one matrix, or a stack of matrices (an array of more dimensions, whose last two are those of a matrix).

    Parameters and errors as for :func:`read_matrix`.

    Returns: Array of two dimensions for one matrix; of three for a stack, whose leading dimensions are merged.
    """
    array = tcm.as_array(_read(path, name, _Wanted(_check_stack_shape)), str(path))
    _check_stack_shape(array.shape, str(path))
    return _native(array if array.ndim == 2 else array.reshape(-1, *array.shape[-2:]))


def read_array(path: str | os.PathLike, name: str | None = None, *, encodings: bool = False) -> np.ndarray:
    """Read one array of numbers with any number of dimensions; otherwise as :func:`read_matrix`."""
    array = _read(path, name, _Wanted(lambda shape, name: None, encodings))
    return _native(tcm.as_array(array, f"{path}: {name}" if name else str(path)))


def array_names(path: str | os.PathLike) -> list[str | None]:
    """Return the names of a file's arrays, or [None] for a format that holds one array without a name."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        with _damage(path, ".npz archive"), np.load(path, allow_pickle=False) as archive:
            return sorted(archive.files)
    if suffix in (".safetensors", ".pt", ".pth"):
        return list(_LISTERS[suffix](path))
    return [None]


class _Wanted(NamedTuple):
    """`_Wanted` says which shapes and element types of a file a caller accepts."""

    #: Function of (shape, name for messages) that refuses the shape in a file's header before the numbers are read.
    look: Callable[[Sequence[int], str], None]
    encodings: bool = False  #: Whether elements of a type without a name are read as unsigned integers.


#: Pattern of a path with the name of an array after it.
_NAMED = re.compile(r"(.+\.(?:npz|safetensors|pt|pth)):(.+)", re.I)


def _read(given: str | os.PathLike, name: str | None, wanted: _Wanted) -> object:
    """Return the object that the reader of the file's format gives."""
    path = Path(given)
    if name is None and not path.exists() and (named := _NAMED.fullmatch(str(given))):
        path, name = Path(named[1]), named[2]
    suffix = path.suffix.lower()
    if suffix not in (*_NPY_READERS, *_READERS):
        known = ", ".join((*_NPY_READERS, *_READERS))
        raise ValueError(f"{path} has the suffix {path.suffix!r}, expected the suffix of a matrix format: {known}")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; check the path")
    if name is not None and path.suffix.lower() in (".npy", ".mtx", ".csv"):
        raise ValueError(
            f"{path} is a {path.suffix} file, which holds one matrix without a name: leave out the name {name!r}"
        )
    return _READERS[suffix](path, name) if suffix in _READERS else _NPY_READERS[suffix](path, name, wanted)


@contextmanager
def _damage(path: Path, what: str) -> Iterator[None]:
    """Turn any error that a damaged file makes its parser raise into a ValueError of one line; this module's errors stay.

    Parsers raise nearly any type: TokenError, zlib.error, struct.error, RuntimeError for encrypted archives,
    NotImplementedError for rare compression, MemoryError for false sizes.
    """
    try:
        yield
    except (OSError, _Refused, _RefusedType):
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} cannot be read as a {what} ({reason})") from None


class _Refused(ValueError):
    """`_Refused` is a ValueError of this module, which :func:`_damage` does not change."""


class _RefusedType(TypeError):
    """`_RefusedType` is a TypeError of this module, which :func:`_damage` does not change."""


def _read_npy(path: Path, name: str | None, wanted: _Wanted) -> np.ndarray:
    with _damage(path, ".npy file of numbers"), path.open("rb") as stream:
        return _read_array(stream, path.stat().st_size, path, wanted)


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of a .npy stream: shape, whether the order is Fortran's, element type."""
    version = np.lib.format.read_magic(stream)
    reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if reader is None:
        raise ValueError(
            f"its format has version {version[0]}.{version[1]}, expected 1.0 or 2.0: save the array again with numpy.save"
        )
    size = stream.read(2 if version == (1, 0) else 4)
    text = stream.read(int.from_bytes(size, "little"))
    # of ml_dtypes' types NumPy writes float8_e5m2 alone as a float of one byte, a type that it then does not read
    e5m2 = b"'<f1'" in text
    shape, fortran_order, dtype = reader(io.BytesIO(size + text.replace(b"'<f1'", b"'|V1'")))
    dtype = np.dtype(ml_dtypes.float8_e5m2) if e5m2 else dtype
    if dtype.hasobject:
        raise ValueError("the array holds Python objects, expected numbers: save a numeric array")
    return shape, fortran_order, dtype


def _read_array(stream: IO[bytes], size: int, path: Path, wanted: _Wanted) -> np.ndarray:
    """Return the array of a .npy stream of `size` bytes, after checking its header against the bytes and the memory."""
    shape, fortran_order, dtype = _read_header(stream)
    if dtype.kind == "V" and dtype.fields is None and dtype.subdtype is None and dtype.itemsize in (1, 2):
        if not wanted.encodings:
            raise _RefusedType(
                f"{path} holds elements of type |V{dtype.itemsize}, which NumPy writes for ml_dtypes' types (float8_e4m3fn, "
                "bfloat16, ...) and which does not state their format: name that of A and B with --operands (check, predict, "
                "whodunit), as in --operands bf16, and that of a result with --out-format (check), or save "
                "x.astype('float32'), which keeps every value"
            )
        dtype = np.dtype(f"<u{dtype.itemsize}")
    try:
        wanted.look(shape, str(path))
        tcm.as_array(np.empty(0, dtype), str(path))
    except ValueError as error:
        raise _Refused(str(error)) from None
    except TypeError as error:
        raise _RefusedType(str(error)) from None
    _check_size(shape, dtype.itemsize, path)
    count, left = math.prod(shape), size - stream.tell()
    if left != count * dtype.itemsize:
        raise ValueError(
            f"its header states {count * dtype.itemsize} bytes of numbers, but the file has {left}: copy the file again"
        )
    data = bytearray(left)
    view, at = memoryview(data), 0
    while at < left and (part := stream.read(min(left - at, 1 << 24))):
        view[at : at + len(part)] = part
        at += len(part)
    if at < left:
        raise ValueError(f"its header states {left} bytes of numbers, but the file has {at}: copy the file again")
    array = np.frombuffer(data, dtype)
    return array.reshape(shape[::-1]).T if fortran_order else array.reshape(shape)


def _check_size(shape: Sequence[int], itemsize: int, path: Path) -> None:
    try:
        check_fits(shape, itemsize, str(path))
    except ValueError as error:
        raise _Refused(str(error)) from None


def _read_npz(path: Path, name: str | None, wanted: _Wanted) -> np.ndarray:
    with _damage(path, ".npz file"), zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if name is None and {"format", "shape", "data"} <= members.keys():
            _check_sparse_sizes(archive, path)
            return _read_sparse(path)
        member = members[_choose(path, name, list(members))]
        with archive.open(member) as stream:
            return _read_array(stream, member.file_size, path, wanted)


def _scipy(module: str, path: Path, what: str) -> Any:
    """Return a module of SciPy, or raise an error that names the extra."""
    try:
        return importlib.import_module(f"scipy.{module}")
    except ImportError:
        raise _Refused(
            f"{path}: reading {what} needs SciPy, which is not installed: pip install 'mpgemm[sparse]'"
        ) from None


def _check_sparse_sizes(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse members of a sparse matrix's archive that are larger than a dense matrix could be, before they are inflated."""

    def pair(shape: Sequence[int], name: str) -> None:
        if tuple(shape) != (2,):
            raise ValueError(f"{name}: its array 'shape' has {math.prod(shape)} numbers, expected 2: save it again")

    with archive.open("shape.npy") as stream:
        rows, columns = _read_array(stream, archive.getinfo("shape.npy").file_size, path, _Wanted(pair)).tolist()
    _check_size((rows, columns), 8, path)
    most = (rows + columns + 1) * (max(rows, columns) + 1) + 16
    for info in archive.infolist():
        with archive.open(info) as stream:
            shape, _, dtype = _read_header(stream)
        if math.prod(shape) > most or info.file_size > 4096 + most * dtype.itemsize:
            raise _Refused(
                f"{path}: {info.filename} has {info.file_size} bytes, too many for {rows} x {columns} numbers; save it again"
            )


def _read_sparse(path: Path) -> np.ndarray:
    """Read a matrix that `scipy.sparse.save_npz` wrote, as a dense matrix."""
    matrix = _scipy("sparse", path, "a sparse matrix").load_npz(path)
    if hasattr(matrix, "check_format"):  # indices beyond the matrix would cause writes outside of its memory
        matrix.check_format(full_check=True)
    _check_size(matrix.shape, matrix.dtype.itemsize, path)
    return matrix.toarray()


def _read_csv(path: Path, name: str | None) -> np.ndarray:
    """Return the numbers of a .csv file; a first line without any number is a heading."""
    with _damage(path, ".csv file of numbers"), path.open(encoding="utf-8-sig", newline="") as stream:
        rows = [(number, row) for number, row in enumerate(csv.reader(stream), 1) if row]
        if rows and all(cell.strip() and not _is_number(cell) for cell in rows[0][1]):
            rows = rows[1:]
        widths = {len(row) for _, row in rows}
        if len(widths) != 1:
            raise ValueError(
                f"its rows have {' or '.join(map(str, sorted(widths)))} numbers, expected equal lengths: complete the rows"
                if rows
                else "it holds no numbers"
            )
        return np.array([[_csv_number(cell, line, column) for column, cell in enumerate(row, 1)] for line, row in rows])


def _csv_number(cell: str, line: int, column: int) -> float:
    if not _is_number(cell):
        raise ValueError(f"line {line}, cell {column} is {cell!r}, expected a number")
    value = float(cell)
    if cell.strip().lstrip("+-").isdecimal() and int(cell) != value:
        raise _Refused(
            f"line {line}, cell {column} is {cell.strip()}, an integer that float64 cannot hold: save it as .npy"
        )
    return value


def _is_number(text: str) -> bool:
    """Return whether a text is a number; underscores between digits, which Python allows, are refused."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _read_torch(path: Path, name: str | None) -> object:
    """Return the tensor of a file, or one tensor of a (nested) mapping, whose name is its keys joined by dots."""
    try:
        importlib.import_module("torch")
    except ImportError:
        raise ValueError(
            f"{path}: reading {path.suffix} needs PyTorch, which is not installed: pip install torch, or save the tensor as "
            ".safetensors or .npy"
        ) from None
    with _damage(path, f"{path.suffix} file of tensors"):
        tensors = _torch_tensors(path)
        chosen = _choose(path, name, sorted(tensors))
    try:
        return tcm.as_array(tensors[chosen].contiguous(), f"{path}: {chosen}")
    except (TypeError, RuntimeError) as error:  # raised for types and layouts that NumPy lacks
        raise TypeError(f"{path}: {chosen} is {tensors[chosen].dtype}: {error}") from None


def _torch_tensors(path: Path) -> dict:
    import torch

    loaded = torch.load(path, map_location="cpu", weights_only=True)
    return {key: value for key, value in _flat(loaded) if isinstance(value, torch.Tensor)}


def _torch_names(path: Path) -> list[str]:
    with _damage(path, f"{path.suffix} file of tensors"):
        return sorted(_torch_tensors(path))


def _safetensors_names(path: Path) -> list[str]:
    import safetensors

    with _damage(path, ".safetensors file"), safetensors.safe_open(path, framework="numpy") as archive:
        return sorted(archive.keys())


def _flat(value: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield (name, leaf) of nested mappings; the name is the keys joined by dots."""
    if not isinstance(value, Mapping):
        yield prefix or "tensor", value
        return
    for key, item in value.items():
        yield from _flat(item, f"{prefix}.{key}" if prefix else str(key))


def _choose(path: Path, name: str | None, known: list[str]) -> str:
    """Return the name of the wanted array of a file: the given name, or that of the only array."""
    if name is None:
        if len(known) == 1:
            return known[0]
        raise _Refused(f"{path} holds {len(known)} arrays, expected one: name one of {', '.join(known) or 'none'}")
    if name not in known:
        raise _Refused(f"{path} holds no array {name!r}: name one of {', '.join(known) or 'none'}")
    return name


def _read_safetensors(path: Path, name: str | None) -> np.ndarray:
    try:
        import safetensors
    except ImportError:
        raise ValueError(
            f"{path}: reading .safetensors needs a library that is not installed: pip install 'mpgemm[safetensors]'"
        ) from None
    with _damage(path, ".safetensors file"), safetensors.safe_open(path, framework="numpy") as archive:
        chosen = _choose(path, name, sorted(archive.keys()))
        tensor = archive.get_slice(chosen)
        if (kind := tensor.get_dtype()) in _SAFETENSORS_FP8:
            return _safetensors_fp8(path, chosen, _SAFETENSORS_FP8[kind])
        return archive.get_tensor(chosen)


#: Element types that the NumPy interface of safetensors does not know, with ml_dtypes' names.
_SAFETENSORS_FP8 = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"}


def _safetensors_fp8(path: Path, name: str, dtype: str) -> np.ndarray:
    """Return a tensor of one-byte floats from a file's bytes: 8 bytes with the header's length, the JSON header, the data."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        entry = json.loads(stream.read(length))[name]
        begin, end = entry["data_offsets"]
        stream.seek(8 + length + begin)
        return np.frombuffer(bytearray(stream.read(end - begin)), getattr(ml_dtypes, dtype)).reshape(entry["shape"])


def _read_mtx(path: Path, name: str | None) -> np.ndarray:
    """Return a Matrix Market file as float64, which SciPy reads; repeated entries are added, as assembly codes expect."""
    mm = _scipy("io", path, "a Matrix Market file")
    with _damage(path, "Matrix Market file"):
        rows, columns, entries, _, field, symmetry = mm.mminfo(path)
        if field == "complex" or symmetry == "hermitian":
            raise _Refused(f"{path} holds a {field} {symmetry} matrix, expected real numbers: save its real part")
        if symmetry != "general" and rows != columns:
            raise ValueError(
                f"it is {rows} x {columns}, but a {symmetry} matrix must be square: correct the header of the file"
            )
        _check_size((rows, columns), 8, path)
        # Each value takes at least two bytes, a digit and a separator; a symmetric file has half of the values.
        if entries // (1 if symmetry == "general" else 3) > path.stat().st_size:
            raise ValueError(
                f"its header states {entries} values, but the file has {path.stat().st_size} bytes: copy the file again"
            )
        matrix = mm.mmread(path)
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return source_array(dense, str(path)).astype(np.float64, copy=False)


_NPY_READERS = {".npy": _read_npy, ".npz": _read_npz}
_READERS = {
    ".mtx": _read_mtx,
    ".csv": _read_csv,
    ".safetensors": _read_safetensors,
    ".pt": _read_torch,
    ".pth": _read_torch,
}


_LISTERS = {".safetensors": _safetensors_names, ".pt": _torch_names, ".pth": _torch_names}


# -- writing --------------------------------------------------------------------------------------------------------
def write_matrix(path: str | os.PathLike, array: object) -> None:
    """Write a matrix as .npy, or as dense .mtx with 17 significant digits, so that every float64 reads back unchanged.

    Raises ValueError if the suffix is neither .npy nor .mtx, or the array is no matrix.
    Raises TypeError if the elements are not real numbers.
    """
    path, array = Path(path), check_matrix(array, str(path))
    if path.suffix.lower() == ".npy":
        with atomic_writer(path) as stream:
            np.save(stream, array, allow_pickle=False)
    elif path.suffix.lower() == ".mtx":
        rows, columns = array.shape
        values = "\n".join(f"{float(value):.17g}" for value in source_array(array, str(path)).T.ravel())
        write_text(path, f"%%MatrixMarket matrix array real general\n{rows} {columns}\n{values}\n")
    else:
        raise ValueError(f"{path} has the suffix {path.suffix!r}, expected .npy or .mtx")
