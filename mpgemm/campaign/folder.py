"""This module keeps a campaign's folder: one file of rows for each part and share, of one device and one set of versions."""

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tensorcore_models.files import atomic_writer, write_text

#: File that names the device and the versions of a folder's rows.
DEVICE = "device.json"


def write_json(path: Path, data: object) -> None:
    """Write data as a JSON file, completely or not at all."""
    write_text(path, json.dumps(data, indent=1) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file.

    Raises
    ------
    ValueError
        If the file is damaged; the message names it.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged ({error}): remove the file and run again to compute its results again"
        ) from None
    if not isinstance(found, dict):
        raise ValueError(
            f"{path} holds a JSON {type(found).__name__}, expected an object: remove the file and run again to compute its "
            "results again"
        )
    return found


def claim(folder: Path, facts: Mapping[str, str]) -> None:
    """Write the device of a folder, or check that it is this one.

    Raises
    ------
    ValueError
        If the folder holds results of another device or of other versions; the message names the differences.
    """
    path = folder / DEVICE
    if not path.exists():
        if any(folder.glob("*/rows-*.json")):
            raise ValueError(
                f"{folder} holds rows but no file {DEVICE}, so their device is not known: give an --out of another folder"
            )
        write_json(path, dict(facts))
        return
    held = read_json(path)
    apart = [name for name in {**held, **facts} if held.get(name) != facts.get(name)]
    if apart:
        said = "; ".join(f"{name} {held.get(name)!r} there, {facts.get(name)!r} here" for name in apart)
        raise ValueError(
            f"{folder} holds results of another device or version ({said}): give an --out of another folder"
        )


class Rows:
    """`Rows` holds the rows of one share of a part.

    Parameters
    ----------
    folder : Path
        Folder of the campaign.
    part : str
    share : int

    Raises
    ------
    ValueError
        If its file exists and is damaged.
    """

    def __init__(self, folder: Path, part: str, share: int = 0):
        self.path = Path(folder) / part / f"rows-{share}.json"
        held = read_json(self.path) if self.path.exists() else {"rows": []}
        self._held = _rows_of(held, self.path)
        # Rows that failed or had no time are tried again.
        self.rows = [row for row in self._held if "failed" not in row]

    def has(self, facts: Mapping[str, Any]) -> bool:
        """Return whether a row with these facts exists."""
        wanted = json.loads(json.dumps(facts))
        return any(all(key in row and row[key] == value for key, value in wanted.items()) for row in self.rows)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row, and write all rows."""
        self.rows.append(json.loads(json.dumps(row)))
        self.write()

    def write(self, left: int = 0) -> None:
        """Write the file; `left` is the number of tasks that had no time."""
        write_json(self.path, {"rows": self.rows, "left": left})


def _rows_of(held: Mapping[str, Any], path: Path) -> list[dict[str, Any]]:
    rows = held.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{path} holds no rows: remove the file and run again to compute its results again")
    return rows


def shares(folder: Path, part: str) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """Yield (rows, tasks that had no time) of each share of a part. Raises ValueError for a damaged file."""
    for path in sorted((Path(folder) / part).glob("rows-*.json")):
        held = read_json(path)
        yield _rows_of(held, path), int(held.get("left") or 0)


# -- arrays ------------------------------------------------------------------------------------------------------------------
def keep_arrays(folder: Path, part: str, name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the arrays of a row to a separate file; names may have slashes."""
    with atomic_writer(Path(folder) / part / "arrays" / f"{name}.npz") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def kept_arrays(folder: Path, part: str, name: str = "**/*") -> dict[str, np.ndarray]:
    """Return the arrays of a row, or of all rows of a part.

    Raises
    ------
    ValueError
        If a file is damaged; the message names it.
    """
    found: dict[str, np.ndarray] = {}
    for path in sorted((Path(folder) / part / "arrays").glob(f"{name}.npz")):
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                found |= {name: held[name] for name in held.files}
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(
                f"{path} is damaged ({error}): remove it and its row in {part}/rows-*.json, and run again"
            ) from None
    return found
