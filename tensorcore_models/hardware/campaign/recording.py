"""This module records outputs of hardware as a compact set of vectors, and replays them against the models.

A folder holds ``vectors.npz`` (arrays a, b, c, d and scales for each instruction and kind of operands) and ``index.json`` (GPU,
driver, date, and the number of dot products of each entry).
"""

import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...catalogue import get_instruction
from ...engines.instruction import Instruction
from ...files import atomic_writer, write_text
from ...probing.random_operands import DrawnOperands
from .comparison import differences

VECTORS = "vectors.npz"
INDEX = "index.json"
FIELDS = ("a", "b", "c", "scale_a", "scale_b", "d")


def write_json(path: Path, data) -> None:
    """Write data as JSON, atomically."""
    write_text(path, json.dumps(data, indent=1) + "\n")


class Recorder:
    """`Recorder` collects vectors and writes them to a folder; its index also holds `facts` (GPU, driver, date)."""

    def __init__(self, folder: Path, facts: dict):
        self.folder, self.facts = Path(folder), facts
        self._arrays: dict[str, Any] = {}
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def has(self, row: Instruction, kind: str) -> bool:
        """Return whether a batch of this instruction and kind is kept."""
        return f"{row}/{kind}" in self._counts

    def add(self, row: Instruction, kind: str, inputs: DrawnOperands, d: np.ndarray) -> None:
        """Keep a batch of operands and its results."""
        name = f"{row}/{kind}"
        self._counts[name] = int(d.size)
        for field, array in zip(FIELDS, (*inputs, d), strict=True):
            if array is not None:
                self._arrays[f"{name}/{field}"] = np.ascontiguousarray(array)

    def save(self) -> None:
        """Write all batches that are kept so far."""
        with atomic_writer(self.folder / VECTORS) as file:
            np.savez_compressed(file, **self._arrays)
        write_json(self.folder / INDEX, {**self.facts, "vectors": self._counts})


def recorded(folder: Path) -> Iterator[tuple[Instruction, str, DrawnOperands, np.ndarray]]:
    """Yield the entries of a recorded set: instruction, kind, operands and the hardware's results.

    Raises FileNotFoundError if the folder holds no set, ValueError if a file is damaged or lacks an entry of the index.
    """
    path = Path(folder) / VECTORS
    try:
        counts = json.loads((Path(folder) / INDEX).read_text())["vectors"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f'{Path(folder) / INDEX} is not an index of recorded vectors, which is JSON with an entry "vectors": record the '
            "vectors again"
        ) from error
    with path.open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
            _check_sizes(archive, counts)
            if (bad := archive.testzip()) is not None:  # numpy reads headers before it checks checksums
                raise ValueError(f"the checksum of {bad} is wrong: record the vectors again")
            file.seek(0)
            arrays = np.load(file, allow_pickle=False)
            for name, count in counts.items():
                instruction, kind = name.rsplit("/", 1)
                parts = {field: arrays[f"{name}/{field}"] for field in FIELDS if f"{name}/{field}" in arrays}
                if parts["d"].size != count:
                    raise ValueError(f"{name} has {parts['d'].size} results, expected {count} as in {INDEX}")
                scales = (parts.get(field) for field in FIELDS[3:5])
                operands = DrawnOperands(parts["a"], parts["b"], parts["c"], *scales)
                yield get_instruction(instruction), kind, operands, parts["d"]
        except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged or not a set of recorded vectors: {error}") from error


def _check_sizes(archive: zipfile.ZipFile, counts: dict[str, int]) -> None:
    """Refuse arrays that are larger than the listed results need, before they are decompressed."""
    sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.infolist()}
    for name, count in counts.items():
        most = (
            4096 + 16 * count * get_instruction(name.rsplit("/", 1)[0]).k
        )  # a result has 2 k operands of 8 bytes at most
        for field in FIELDS:
            if sizes.get(f"{name}/{field}", 0) > most:
                raise ValueError(
                    f"{name}/{field} has {sizes[f'{name}/{field}']} bytes, expected at most {most} for {count} results"
                )


def replay(folder: Path, model=None) -> dict[str, int]:
    """Return how many results of each "instruction/kind" differ from ``model(row)``, by default the catalogue's row."""
    return {
        f"{row}/{kind}": int(differences(d, (model(row) if model else row).mma_bits(*inputs), row.formats[3]).sum())
        for row, kind, inputs, d in recorded(folder)
    }
