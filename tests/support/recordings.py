"""Recorded outputs of GPUs and expected bits of published models, checked before any of them counts."""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

FP8 = {"e4m3": "e4m3fn", "e5m2": "e5m2"}


class Tiles(NamedTuple):
    """Encodings of products of matrices: a (tiles, m, k), b (tiles, k, n), c and d (tiles, m, n)."""

    name: str
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray
    a_format: str = ""
    b_format: str = ""
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None


def _index(folder: Path, expected: str) -> dict:
    path = folder / "index.json"
    try:
        index = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(index, dict) or index.get("format") != expected:
        raise ValueError(f"{path} is of another format: expected {expected!r}")
    return index


def _shards(folder: Path, index: dict) -> dict[str, np.lib.npyio.NpzFile]:
    """The archives that the index names, each with the checksum that the index gives."""
    shards = {}
    for name, facts in index["shards"].items():
        if not (folder / name).is_file():
            raise ValueError(f"{folder / name} is missing, although index.json names it")
        content = (folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != facts["sha256"]:
            raise ValueError(f"{folder / name} is damaged: its checksum is not the one in index.json")
        shards[name] = np.load(io.BytesIO(content))
    return shards


def rtx4060(folder: Path) -> Iterator[Tiles]:
    """Recorded `mma.sync` outputs of an RTX 4060 (kind "mma" of its index).

    Raises
    ------
    ValueError
        If the index or an archive is damaged or of another format; the message names the file.
    """
    index = _index(folder, "mmaemu-hwmini/1")
    shards = _shards(folder, index)
    for case in index["cases"]:
        if case["kind"] != "mma":
            continue
        a, b, c = (shards[shard][key] for shard, key in (case["inputs"][name] for name in "abc"))
        shard, key = case["expect"]["bits"]
        d = shards[shard][key]
        if case["params"]["layout"] == "vector":  # one output for each row of a and of b
            a, b, c, d = a[:, None, :], b[:, None, :], c[:, None, None], d[:, None, None]
        formats = [FP8[case["params"][name]] for name in ("fmt_a", "fmt_b")]
        yield Tiles(case["id"], a, np.ascontiguousarray(b.transpose(0, 2, 1)), c, d, *formats)


def _nibbles(packed: np.ndarray, axis: int) -> np.ndarray:
    """Two encodings to a byte along an axis, low nibble first, as one to a byte."""
    pairs = np.stack([packed & 15, packed >> 4], axis=axis + 1)
    shape = list(packed.shape)
    shape[axis] *= 2
    return pairs.reshape(shape)


def model_vectors(path: Path) -> Iterator[tuple[str, Tiles]]:
    """Sets and expected bits of published models: (name of the set, tiles named "arch:instruction").

    Raises
    ------
    ValueError
        If the file is damaged or of another format; the message names it.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes())) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    cases: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for key, array in arrays.items():
        instruction, _, rest = key.partition("|")
        kind, _, name = rest.partition("|")
        cases.setdefault((kind, instruction), {})[name] = array
    for (kind, instruction), case in cases.items():
        if set(case) not in ({"A", "B", "C", "D"}, {"A", "B", "C", "D", "SA", "SB"}) or ":" not in instruction:
            raise ValueError(f"{path} is of another format: {instruction}|{kind} has arrays {', '.join(sorted(case))}")
        a, b = case["A"], case["B"]
        if "k64" in instruction and a.shape[2] == 32:
            a, b = _nibbles(a, 2), _nibbles(b, 1)
        scales = {"scale_a": case.get("SA"), "scale_b": case.get("SB")}
        yield kind, Tiles(instruction, a, b, case["C"], case["D"], **scales)
