"""Pages whose code is run: python blocks with the text they print, and commands with theirs."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))

from terminal import COLUMNS, in_a_terminal

BLOCK = re.compile(r"```(python|text|console)\n(.*?)```", re.S)


def run_page(page: Path, folder: Path) -> list[tuple[str, str]]:
    """(what the page shows, what running it prints) for each block with an output; every block runs in `folder`."""
    found: list[tuple[str, str]] = []
    printed = ""
    for number, (kind, text) in enumerate(BLOCK.findall(page.read_text())):
        if kind == "python":
            script = folder / f"block_{number}.py"
            script.write_text(text)
            printed = in_a_terminal(_output([sys.executable, str(script)], folder))
        elif kind == "text":
            found.append((text, printed))
        else:
            command, _, shown = text.partition("\n")
            words = shlex.split(command.removeprefix("$ "))
            assert words[0] == "mpgemm", command
            found.append((shown, _output([sys.executable, "-m", *words], folder)))
    return found


def _output(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": str(COLUMNS)}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
