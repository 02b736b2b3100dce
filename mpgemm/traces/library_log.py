"""This module reads cuBLASLt's configuration of a product from the log that CUBLASLT_LOG_FILE names."""

import os
import re
from pathlib import Path

#: Environment with which a process must start for cuBLASLt to log each call; the file name is added to it.
LEVEL, FILE = "CUBLASLT_LOG_LEVEL", "CUBLASLT_LOG_FILE"
CALLS = "5"

_CALL = re.compile(r"\[(cublasLt\w*Matmul)\]")
_FIELD = re.compile(r"\b([ABCD]desc|computeDesc|algo)=\[([^\]]*)\]")
_WORKSPACE = re.compile(r"workSpaceSizeInBytes=(\d+)")


class LibraryLog:
    """`LibraryLog` reads this process's log from the end of the last reading on; it is empty if cuBLASLt writes none."""

    def __init__(self, path: str | None = None):
        name = path if path is not None else os.environ.get(FILE)
        self.path = None if name is None else Path(name)
        self._at = self._size()

    def _size(self) -> int:
        return self.path.stat().st_size if self.path is not None and self.path.exists() else 0

    def since(self) -> str:
        """Return the text written since the last call."""
        if self.path is None or not self.path.exists():
            return ""
        with self.path.open("rb") as file:
            file.seek(self._at)
            text = file.read().decode(errors="replace")
            self._at = file.tell()
        return text


def configuration(text: str) -> dict[str, object] | None:
    """Return the configuration of the last product in a log, or None.

    It holds the call, descriptors, algorithm and bytes of workspace.
    """
    for line in reversed(text.splitlines()):
        call, fields = _CALL.search(line), dict(_FIELD.findall(line))
        if call and "algo" in fields:
            workspace = _WORKSPACE.search(line)
            return {"call": call[1], **fields, "workspace": int(workspace[1]) if workspace else None}
    return None
