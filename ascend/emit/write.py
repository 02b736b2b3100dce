"""The dialects that a plan can be written out in, and the files of a kernel, whole or not at all."""

import json
from collections.abc import Callable
from pathlib import Path

from ascend.emit.ascendc import ascendc_files
from ascend.emit.catlass import catlass_files
from ascend.emit.pto import pto_files
from ascend.kernels.base import Kernel
from tensorcore_models.files import write_text

#: What writes a plan out.
EMITTERS: dict[str, Callable[[Kernel], dict[str, str | dict]]] = {
    "pto": pto_files, "catlass": catlass_files, "ascendc": ascendc_files,
}  # fmt: skip


def write_files(folder: str | Path, files: dict[str, str | dict]) -> list[Path]:
    """Write texts, and data as JSON, into a folder that is made if need be; the paths. Raises ValueError if it is a file."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_text(folder / name, content if isinstance(content, str) else json.dumps(content, indent=2) + "\n")
    return [folder / name for name in files]
