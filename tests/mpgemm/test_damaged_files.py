"""Whatever a user or a broken disk does to a file: one line and exit status 2, before memory is taken."""

import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from mpgemm.cli import main
from mpgemm.experiments.journal import Journal, content_key
from mpgemm.inputs.files import read_matrix


def npy_bytes(array=None) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.ones((4, 4), np.float32) if array is None else array)
    return stream.getvalue()


def header_only(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(118 - 1) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def damaged_npz(change) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy_bytes(np.arange(4096.0).reshape(64, 64)))
    return bytes(change(bytearray(stream.getvalue())))


def flag_encrypted(data: bytearray) -> bytearray:
    data[6] |= 1
    at = data.rindex(b"PK\x01\x02")
    data[at + 8] |= 1
    return data


def odd_method(data: bytearray) -> bytearray:
    at = data.rindex(b"PK\x01\x02")
    data[8:10] = data[at + 10 : at + 12] = struct.pack("<H", 97)
    return data


def broken_stream(data: bytearray) -> bytearray:
    data[60:90] = bytes(30)
    return data


FILES = {
    "huge.npy": header_only("(4000000000, 4000000)"),
    "promising.npy": header_only("(1000, 1000)"),
    "nested.npy": header_only("(" * 40 + "1" + ")" * 39),
    "token.npy": header_only("(4, 'a"),
    "overflow.npy": header_only("(99999999999999999999999999, 4)"),
    "negative.npy": header_only("(-4, 4)"),
    "short.npy": npy_bytes()[:-3],
    "long.npy": npy_bytes() + b"more",
    "empty.npy": b"",
    "encrypted.npz": damaged_npz(flag_encrypted),
    "method.npz": damaged_npz(odd_method),
    "stream.npz": damaged_npz(broken_stream),
    "half.npz": damaged_npz(lambda data: data[: len(data) // 2]),
    "huge_array.mtx": b"%%MatrixMarket matrix array real general\n1000000 1000000\n1.0\n",
    "huge.mtx": b"%%MatrixMarket matrix coordinate real general\n9000000 9000000 1\n1 1 1.0\n",
    "many.mtx": b"%%MatrixMarket matrix array real general\n10000 10000\n1.0\n",
    "digits.mtx": b"%%MatrixMarket matrix array real general\n" + b"9" * 5000 + b" 2\n1.0\n",
    "header.safetensors": struct.pack("<Q", 1 << 60) + b"{}",
    "cut.safetensors": struct.pack("<Q", 8) + b"{",
}


@pytest.mark.parametrize("name", FILES)
def test_damaged_matrix_files(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    with pytest.raises(ValueError, match=name.replace(".", r"\.")) as caught:
        read_matrix(path)
    assert "\n" not in str(caught.value)
    assert main(["evaluate", str(path), str(path)]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1 and name in shown


def test_random_damage_is_a_value_error_or_a_matrix(tmp_path):
    rng = np.random.default_rng(4)
    whole = {"npy": npy_bytes(), "npz": damaged_npz(lambda data: data)}
    for n in range(300):
        kind = ("npy", "npz")[n % 2]
        data = bytearray(whole[kind])
        for at in rng.integers(0, len(data), int(rng.integers(1, 6))):
            data[at] = int(rng.integers(256))
        path = tmp_path / f"random.{kind}"
        path.write_bytes(data)
        with contextlib.suppress(ValueError, TypeError):
            assert read_matrix(path).ndim == 2


def test_orders_and_types_of_npy_survive(tmp_path):
    for array in (
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.ones((0, 3)),
    ):
        np.save(tmp_path / "x.npy", array)
        found = read_matrix(tmp_path / "x.npy")
        assert found.shape == array.shape and np.array_equal(found, array) and found.dtype.isnative
        np.savez_compressed(tmp_path / "x.npz", a=array, b=array)
        assert np.array_equal(read_matrix(tmp_path / "x.npz", "b"), array)


def test_fp8_safetensors(tmp_path):
    pytest.importorskip("safetensors")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for kind, dtype in (("F8_E4M3", ml_dtypes.float8_e4m3fn), ("F8_E5M2", ml_dtypes.float8_e5m2)):
        data = np.arange(1, 13, dtype=np.float32).astype(dtype).reshape(3, 4)
        header = json.dumps({"w": {"dtype": kind, "shape": [3, 4], "data_offsets": [0, 12]}}).encode()
        path = tmp_path / "x.safetensors"
        path.write_bytes(struct.pack("<Q", len(header)) + header + data.tobytes())
        found = read_matrix(path)
        assert found.dtype == dtype and found.tobytes() == data.tobytes()


def test_sizes_come_before_memory(capsys):
    assert main(["evaluate", "--distribution", "gaussian", "--shape", "10000000", "10000000", "10000000"]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1 and "GiB" in shown
    assert main(["explain", "--distribution", "gaussian", "--k", "-5"]) == 2
    assert main(["explain", "--k", "-5"]) == 2
    assert "--k must be at least 0" in capsys.readouterr().err


def test_a_table_with_an_endless_field(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("a,b\n" + "1" * (1 << 18) + ",2\n")
    (tmp_path / "y.csv").write_text("a,b\n1,2\n")
    assert main(["report", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "x.csv cannot be read as CSV tables" in shown and "| 1 | 2 |" in shown


@pytest.mark.parametrize("change", ["null", "[]", '{"key": 1}', "text", "[" * 100000, "edited", "a list"])
def test_a_bad_journal_entry_is_dropped_and_counted(tmp_path, change):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.add({"n": 1}, {"value": 1.5})
    journal.add({"n": 2}, {"value": float("inf"), "list": [1, 2.5, None]})
    first, second = path.read_text().splitlines()
    bad = {"edited": first.replace("1.5", '"1.5"'), "a list": first.replace('{"value": 1.5}', "[1.5]")}.get(
        change, change
    )
    path.write_text(bad + "\n" + second + "\n")
    again = Journal(path)
    ours = change in ("edited", "a list")  # what is no line of a journal may be another's: it stays
    assert again.dropped == ours and again.get({"n": 1}) is None
    assert path.read_text().startswith(second if ours else bad)
    assert again.get({"n": 2}) == {"value": float("inf"), "list": [1, 2.5, None]}
    again.add({"n": 1}, {"value": 1.5})
    assert Journal(path).dropped == 0 and Journal(path).get({"n": 1}) == {"value": 1.5}
    assert content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})


@pytest.mark.sweep(1)
@pytest.mark.skipif(sys.platform == "win32", reason="closes a descriptor by a POSIX shell")
@pytest.mark.parametrize("redirection", [">&-", ">/dev/full", "| head -c 5 >/dev/null"])
def test_standard_output_that_cannot_be_written(redirection):
    if redirection == ">/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    run = subprocess.run(
        f"{sys.executable} -m mpgemm models {redirection}", shell=True, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in run.stderr and "Exception ignored" not in run.stderr
    assert run.stderr.count("\n") <= 1


class Failing:
    """Raises what it is told to, as a command."""

    error: Exception

    @classmethod
    def run(cls, args):
        raise cls.error


@pytest.mark.parametrize("error", [MemoryError(), OverflowError("too large"), RecursionError()])
def test_errors_of_any_command_are_one_line(error, monkeypatch, capsys):
    from mpgemm.cli import models

    Failing.error = error
    monkeypatch.setattr(models, "run", Failing.run)
    assert main(["models"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_dying_cluster_is_one_line(monkeypatch, capsys):
    from mpgemm.cli import models

    killed = type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})
    Failing.error = killed("the task was lost")
    monkeypatch.setattr(models, "run", Failing.run)
    assert main(["models"]) == 2
    shown = capsys.readouterr().err
    assert "cluster" in shown and shown.count("\n") == 1


ZEROS = 1 << 22  # of 8 bytes


def bomb(path, members: dict[str, bytes], name: str, shape: str):
    """An .npz of which one member inflates to 32 MiB of zeros, whatever shape its header says."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in members.items():
            archive.writestr(f"{each}.npy", content)
        archive.writestr(f"{name}.npy", header_only(shape) + bytes(8 * ZEROS))


SPARSE = {"format": npy_bytes(np.array(b"csr")), "shape": npy_bytes(np.array([3, 3]))}


@pytest.mark.parametrize(
    ("members", "name", "shape", "message"),
    [
        ({}, "x", f"({ZEROS},)", "expected a matrix of 2 dimensions"),
        ({}, "x", f"(1, {ZEROS}, 1, 1)", "expected a matrix of 2 dimensions"),
        (SPARSE, "data", f"({ZEROS},)", "data.npy has 33554560 bytes, too many for 3 x 3"),
        (SPARSE, "data", "(3,)", "data.npy has 33554560 bytes, too many for 3 x 3"),
        (
            {"format": SPARSE["format"], "data": SPARSE["shape"]},
            "shape",
            f"({ZEROS},)",
            "its array 'shape' has 4194304 numbers, expected 2",
        ),
    ],
)
def test_compressed_zeros_are_refused_before_they_are_inflated(tmp_path, members, name, shape, message):
    bomb(tmp_path / "x.npz", members, name, shape)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            read_matrix(tmp_path / "x.npz")
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_types_that_are_no_numbers_are_refused_before_they_are_read(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", np.zeros((2, 2), complex))
    monkeypatch.setattr(np, "frombuffer", None)  # what numbers are made by
    with pytest.raises(TypeError, match="must hold real numbers"):
        read_matrix(tmp_path / "x.npz")
