"""This module lists the dialects that a plan can be written in, and writes a kernel's files, all or none."""

import json
from collections.abc import Callable
from pathlib import Path

from ascend.emit.ascendc import ascendc_files
from ascend.emit.catlass import catlass_files
from ascend.emit.pto import pto_files
from ascend.kernels.base import Kernel
from tensorcore_models.files import write_text

#: Function that writes a plan in each dialect.
EMITTERS: dict[str, Callable[[Kernel], dict[str, str | dict]]] = {
    "pto": pto_files, "catlass": catlass_files, "ascendc": ascendc_files,
}  # fmt: skip


def write_files(folder: str | Path, files: dict[str, str | dict]) -> list[Path]:
    """Write texts, and data as JSON, into a folder and return the paths. Raises ValueError if the folder's path is a file."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, expected a folder: give another path")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_text(folder / name, content if isinstance(content, str) else json.dumps(content, indent=2) + "\n")
    return [folder / name for name in files]
