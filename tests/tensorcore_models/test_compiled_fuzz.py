"""Hostile texts of kernels: lines, operands, numbers and suffixes of compiled kernels exchanged at random.

Whatever comes out is a kernel that runs within its limits, or a ValueError of one line; never another exception.
"""

import re

import amd_cases
import numpy as np
import ptx_cases
import pytest

from tensorcore_models import compiled

FILES = {
    path.stem: path
    for folder in (ptx_cases.FOLDER, amd_cases.FOLDER)
    for path in folder.glob("*.[ps]*")
    if path.suffix != ".py"
}
NUMBERS = ("0", "1", "7", "31", "-1", "4294967295", "18446744073709551615", "99999999999999999999999")
LIMITS = compiled.KernelLimits(steps=1500, memory=1 << 25, threads=1024)


def drawn(rng, values):
    return values[int(rng.integers(len(values)))]


def exchanged(rng, pattern, line, other):
    """The line with one match of a pattern replaced by a match in another line."""
    own, new = re.findall(pattern, line), re.findall(pattern, other)
    return line.replace(drawn(rng, own), drawn(rng, new), 1) if own and new else line


def changed_line(rng, line, other):
    """A line after one change of its operands, numbers, suffixes or characters."""
    kind = int(rng.integers(5))
    if kind < 2:
        return exchanged(rng, (r"[%\w.]+", r"\.\w+")[kind], line, other)
    if kind == 2:
        return exchanged(rng, r"\d+", line, drawn(rng, NUMBERS))
    if kind == 3:
        at = int(rng.integers(len(line) + 1))
        return line[:at] + chr(int(rng.integers(1, 0x250))) + line[at:]
    parts = re.split("(,)", line)
    del parts[int(rng.integers(len(parts)))]
    return "".join(parts)


def hostile(rng, text):
    """The text after one to three changes."""
    lines = text.split("\n")
    for _ in range(int(rng.integers(1, 4))):
        i, j = (int(x) for x in rng.integers(len(lines), size=2))
        kind = int(rng.integers(8))
        if kind == 0:
            lines[i : i + 1] = []
        elif kind == 1:
            lines.insert(i, lines[j])
        elif kind == 2:
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines[i] = changed_line(rng, lines[i], lines[j])
    return "\n".join(lines) + "\n"


def outcome(name, seed):
    """What becomes of one hostile text: "ran" or what the error says."""
    rng = np.random.default_rng(seed)
    arguments = [*(np.zeros(8192, np.uint16) for _ in "ab"), np.zeros(8192, np.float32), 64, 64, 64]
    try:
        program = compiled.read(hostile(rng, FILES[name].read_text()))
        if seed % 4:
            program.run(arguments, limits=LIMITS, checks=bool(seed % 2), unpublished="nearest")
        else:
            str(program.recipe(arguments, limits=LIMITS))
    except ValueError as error:
        return str(error)
    except Exception as error:
        raise AssertionError(f"{name}, seed {seed}: {type(error).__name__}") from error
    return "ran"


def test_hostile_texts():
    """Some texts still run: the changes leave most of a kernel as it was."""
    names = ("sm_80-fp16-masked", "sm_90-fp8-promoted", "fp16-16x16")
    found = [outcome(name, seed) for name in names for seed in range(12)]
    assert not [each for each in found if "\n" in each]
    assert 2 < found.count("ran") < len(found) - 2


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_hostile_texts(name):
    found = [outcome(name, seed) for seed in range(100, 300)]
    assert not [each for each in found if "\n" in each]
