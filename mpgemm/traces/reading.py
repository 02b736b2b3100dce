"""This module reads a folder of recorded tensors: an own trace, or .safetensors, .npz, .pt and .npy files of modules.

Without an index a tensor's name is that of its file inside of the folder, followed by its name in the file if the file
holds several: ``step3/model.layers.0.q_proj.output.npy``, or ``model.layers.0.q_proj.output`` in ``step3.safetensors``.
"step" and a number anywhere before the module give the step (0 without). The last part is input, weight, bias, output,
input_scale or weight_scale (output without). Modules are taken in the order of their names, with numbers in them as
numbers.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np

from mpgemm.inputs.files import array_names, read_array
from mpgemm.traces.recording import INDEX, KINDS, VERSION

#: Suffixes of files that hold tensors.
SUFFIXES = (".safetensors", ".npz", ".npy", ".pt", ".pth")
_STEP = re.compile(r"(?:^|[/._-])step[_-]?(\d+)(?:[/._-]|$)")


class TensorPlace(NamedTuple):
    """`TensorPlace` is the place of a tensor: file, name in the file, and element type if the file holds encodings."""

    path: Path
    name: str | None
    type: str | None


@dataclass(frozen=True)
class Trace:
    """`Trace` holds recorded modules in order."""

    folder: Path
    #: places of each tensor; tensors of several places are joined (:mod:`mpgemm.traces.fused`)
    modules: dict[tuple[int, str], dict[str, TensorPlace | tuple[TensorPlace, ...]]]
    left_out: tuple[str, ...] = ()  #: products that were not recorded, as "module: operation"

    def tensor(self, key: tuple[int, str], kind: str) -> np.ndarray | None:
        """Return a module's tensor, or None if it was not recorded.

        Raises ValueError, TypeError or OSError if the file cannot be read.
        """
        place = self.modules.get(key, {}).get(kind)
        if place is None:
            return None
        if isinstance(place, tuple) and not isinstance(place, TensorPlace):
            return _behind_each_other([self._read(each) for each in place], kind)
        return self._read(place)

    def _read(self, place: TensorPlace) -> np.ndarray:
        array = read_array(place.path, place.name)
        if place.type is None or array.dtype.name == place.type:
            return array
        dtype = getattr(ml_dtypes, place.type, None)
        if dtype is None or np.dtype(dtype).itemsize != array.dtype.itemsize:
            raise ValueError(
                f"{place.path}: the index says {place.type}, but the file holds {array.dtype}: record the trace again"
            )
        return array.view(dtype)


def _behind_each_other(parts: list[np.ndarray], kind: str) -> np.ndarray | None:
    """Return the parts of a fused projection joined.

    Outputs are joined by columns, weights and their scales by rows. The input is the one that all share, or None if it
    differs.
    """
    if kind.startswith("input"):
        same = all(x.dtype == parts[0].dtype and np.array_equal(x, parts[0], equal_nan=False) for x in parts)
        return parts[0] if same else None
    if kind == "weight_scale" and any(x.size == 1 for x in parts):
        return None  # one number for each part is no scale of the whole
    return np.concatenate(parts, -1 if kind == "output" else 0)


def read_trace(folder: str | Path) -> Trace:
    """Return the tensors of a folder, which are read on demand.

    Raises ValueError or OSError if the folder holds no tensors, or a damaged index.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; expected a folder of tensors")
    modules, left_out = _indexed(folder) if (folder / INDEX).is_file() else (_by_name(folder), ())
    if not modules:
        raise ValueError(f"{folder}: no tensors found, expected files of {', '.join(SUFFIXES)}")
    return Trace(folder, modules, left_out)


def _indexed(folder: Path) -> tuple[dict, tuple[str, ...]]:
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        rows, version = index["modules"], index["version"]
        if version == VERSION:
            return _places(folder, rows), tuple(index.get("left_out", {}))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{folder / INDEX} is no index of a trace ({type(error).__name__}: {error}), expected JSON with version and "
            "modules: record the trace again"
        ) from None
    raise ValueError(f"{folder / INDEX}: the trace has version {version!r}, expected {VERSION}: record the trace again")


def _places(folder: Path, rows: list) -> dict:
    """Return the places of an index's tensors."""
    return {
        (int(row["step"]), str(row["module"])): {
            kind: TensorPlace(folder / entry["file"], None, entry["type"]) for kind, entry in row["tensors"].items()
        }
        for row in rows
    }


def _by_name(folder: Path) -> dict:
    found: dict[tuple[int, str], dict[str, TensorPlace]] = {}
    for path in sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES):
        stem = path.relative_to(folder).with_suffix("").as_posix()
        for name in array_names(path):
            step, module, kind = _parsed(stem if name is None else f"{stem}/{name}", name is None)
            found.setdefault((step, module), {})[kind] = TensorPlace(path, name, None)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], _natural(item[0][1]))))


def _parsed(text: str, alone: bool) -> tuple[int, str, str]:
    """Return (step, module, kind) of a name."""
    match = _STEP.search(text)
    step = 0
    if match is not None:
        step, text = int(match[1]), text[match.end() :]
    if not alone:  # the file's own name is not part of the module's
        text = text.rpartition("/")[2]
    module, dot, kind = text.replace("/", ".").rpartition(".")
    return (step, module, kind) if dot and kind in KINDS else (step, text.replace("/", "."), "output")


def _natural(text: str) -> list:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text)]
