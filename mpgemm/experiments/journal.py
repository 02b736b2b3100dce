"""A journal of finished measurements, so that an interrupted sweep resumes where it stopped.

One line of JSON for each finished configuration, keyed by a hash of everything that determines its result. A line is
appended in one write, which a killed process does not lose. A machine that stops may lose the last second: the disk is asked to
keep the lines once a second. A line that was cut short is dropped when the journal is opened.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from tensorcore_models.files import write_text

#: Seconds between two calls that make the disk keep the lines, which take ten milliseconds each.
SYNC_SECONDS = 1.0


def _check_of(result: object) -> str:
    """Hash of a result, so that an entry that was damaged or edited is noticed."""
    return hashlib.sha256(json.dumps(result, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def content_key(configuration: Mapping) -> str:
    """Hash of a JSON-compatible configuration; the order of its keys does not matter."""
    text = json.dumps(configuration, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Journal:
    """Finished results by configuration. With `path` None they are kept in memory only.

    path: The journal file; read if it exists, made with its folder on the first :meth:`add`.
    code: Entries whose configuration says another `code` are left where they are, and not used.
    dropped (int): Entries of the file that were damaged: their configurations are measured again.
    outdated (int): Entries of other code: their configurations are measured again, too.
    """

    def __init__(self, path: str | os.PathLike | None = None, code: str | None = None):
        self.path = None if path is None else Path(path)
        self._results: dict[str, dict] = {}
        self.dropped = self.outdated = 0
        self._code = code
        self._next_sync = 0.0
        if self.path is not None and self.path.exists():
            self._load(self.path)

    def _load(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8", errors="replace")
        kept = []
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                key, result, by = entry["key"], entry["result"], entry["configuration"].get("code")
                sound = isinstance(result, dict) and entry["check"] == _check_of(result) and isinstance(key, str)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                sound = False
            if not sound:  # cut short, damaged or edited
                self.dropped += 1
                continue
            kept.append(line)
            if self._code in (None, by):
                self._results[key] = result
            else:
                self.outdated += 1
        whole = "".join(line + "\n" for line in kept)
        if whole != text:
            write_text(path, whole)

    def __len__(self) -> int:
        return len(self._results)

    def get(self, configuration: Mapping) -> dict | None:
        """The finished result of that configuration, or None."""
        return self._results.get(content_key(configuration))

    def add(self, configuration: Mapping, result: Mapping) -> None:
        """Keep a finished result, in the file before this returns."""
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
