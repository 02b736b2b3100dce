"""This module writes files whole or not at all; it follows links, and writes straight into files that are not regular."""

import io
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: Names that stand for files which this process has open.
_OPEN_FILE = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


@contextmanager
def atomic_writer(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Yield a binary file that appears at `path` only when the block ends without an exception.

    The folder is made if it is missing. The data reach the disk before the name does. A symbolic link stays a link, and the
    file that it leads to is written. A FIFO, a device such as /dev/null and a file that is open already (/dev/stdout) are never
    replaced: the data are written into them when the block ends. Raises OSError if the folder or the file cannot be written.
    """
    path = Path(path)
    try:
        there = os.stat(path)  # follows links
    except FileNotFoundError:
        there = None
    number = _open_number(path)
    if number is not None or (there is not None and not stat.S_ISREG(there.st_mode)):
        buffer = io.BytesIO()
        yield buffer
        with path.open("wb") if number is None else os.fdopen(os.dup(number), "wb") as stream:
            stream.write(buffer.getbuffer())
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask() if there is None else stat.S_IMODE(there.st_mode))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _open_number(path: Path) -> int | None:
    """Return the file descriptor that a path such as /dev/fd/3 or /dev/stdout names; None for other paths."""
    if found := _OPEN_FILE.fullmatch(str(path)):
        return int(found[1])
    return _STREAMS.get(str(path))


def _umask() -> int:
    """Return the process's file creation mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write `text` as UTF-8, the whole file or nothing; characters that UTF-8 lacks (bytes of a file's name) become \\xNN."""
    with atomic_writer(path) as stream:
        stream.write(text.encode(errors="backslashreplace"))
