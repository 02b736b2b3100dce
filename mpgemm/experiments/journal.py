"""Keeps a journal of finished measurements, so that an interrupted sweep resumes where it stopped.

The journal has one line of JSON for each finished configuration, keyed by a hash of everything that determines its result. A
line is appended in one write, so a killed process loses none. Lines are synchronised to the disk once a second, so a machine
that stops may lose the last second. Truncated or damaged lines are dropped when the journal is opened; lines of other programs
stay unchanged, and a file with lines of other programs only is refused.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from tensorcore_models.files import atomic_writer

#: First bytes of each line.
_HEAD = b'{"check": "'
#: Seconds between two calls of fsync, which take ten milliseconds each.
SYNC_SECONDS = 1.0


def _check_of(result: object) -> str:
    """Return a hash of a result, by which damaged or edited entries are noticed."""
    return hashlib.sha256(json.dumps(result, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def _is_ours(line: bytes) -> bool:
    """Return whether a line was written by a journal, damaged or not."""
    return line.startswith(_HEAD)


def content_key(configuration: Mapping) -> str:
    """Return a hash of a JSON-compatible configuration that does not depend on the order of its keys."""
    text = json.dumps(configuration, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Journal:
    """`Journal` holds finished results by configuration, in memory only if `path` is None.

    path: journal file; it is read if it exists, and made with its folder on the first :meth:`add`.
    code: digest of the code; entries with another `code` in their configuration stay in the file and are not used.
    dropped (int): number of damaged entries of the file, whose configurations are measured again.
    outdated (int): number of entries of other code, whose configurations are measured again, too.
    fresh: whether to forget the results in the file.
    Raises ValueError if the file is no journal; the file is not changed then.
    """

    def __init__(self, path: str | os.PathLike | None = None, code: str | None = None, *, fresh: bool = False):
        self.path = None if path is None else Path(path)
        self._results: dict[str, dict] = {}
        self.dropped = self.outdated = 0
        self._code = code
        self._next_sync = 0.0
        if self.path is not None and self.path.exists():
            self._load(self.path, fresh)

    def _load(self, path: Path, fresh: bool) -> None:
        if not path.is_file():
            raise ValueError(f"{path} is not a regular file, so a journal cannot be kept there; name another folder")
        text = path.read_bytes()
        *lines, rest = text.split(b"\n")
        kept = []
        if rest and not _HEAD.startswith(rest):  # a line that ends within its head is lost
            lines.append(rest)
        if any(line.strip() for line in lines) and not any(_is_ours(line) for line in lines):
            raise ValueError(
                f"{path} was written by another program and is not a journal of measurements; name another folder"
            )
        for line in [] if fresh else lines:
            try:
                entry = json.loads(line)
                key, result, by = entry["key"], entry["result"], entry["configuration"].get("code")
                sound = isinstance(result, dict) and entry["check"] == _check_of(result) and isinstance(key, str)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                sound = False
            if not sound:
                if _is_ours(line):  # cut short, damaged or edited
                    self.dropped += 1
                else:
                    kept.append(line)
                continue
            kept.append(line)
            if self._code in (None, by):
                self._results[key] = result
            else:
                self.outdated += 1
        whole = b"".join(line + b"\n" for line in kept)
        if whole != text:
            with atomic_writer(path) as stream:
                stream.write(whole)

    def __len__(self) -> int:
        return len(self._results)

    def get(self, configuration: Mapping) -> dict | None:
        """Return the finished result of a configuration, or None."""
        return self._results.get(content_key(configuration))

    def add(self, configuration: Mapping, result: Mapping) -> None:
        """Keep a finished result, which is in the file when this returns."""
        key = content_key(configuration)
        self._results[key] = dict(result)
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"key": key, "configuration": configuration, "check": _check_of(result), "result": result}
        line = json.dumps(entry, sort_keys=True) + "\n"
        with self.path.open("ab", buffering=0) as stream:
            stream.write(line.encode())
            if time.monotonic() >= self._next_sync:
                os.fsync(stream.fileno())
                self._next_sync = time.monotonic() + SYNC_SECONDS
