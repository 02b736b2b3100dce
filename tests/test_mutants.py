"""Each deliberate fault of tests/mutation changes one place of today's code."""

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "mutation"


def module(name: str):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found  # run.py imports places by this name, and dataclasses look theirs up
    spec.loader.exec_module(found)
    return found


places = module("places")
run = module("run")


def test_each_changes_one_place():
    texts = {path: (run.ROOT / path).read_text() for path in {mutant.path for mutant in run.MUTANTS}}
    for mutant in run.MUTANTS:
        text = texts[mutant.path]
        assert places.changed(mutant.path, text, mutant.place, mutant.old, mutant.new) != text, mutant.name
    assert len({mutant.name for mutant in run.MUTANTS}) == len(run.MUTANTS)


C = """
/* total( */ #define ONE 1
static int NAME(total)(const int *x, int (*f)(int))
{
    return x[0] + f(1); /* { */
}

static inline double other(double x) { return x + 1; }
"""


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.h", C.replace("/* total( */ ", "/* total( */\n"), ["ONE", "NAME(total)", "other"]),
        ("a.pyx", "cdef int one(x):\n    return 1\n\ndef two(\n    x,\n):\n    return 2\n", ["one", "two"]),
        (
            "a.py",
            'class A:\n    x: int = 1\n    def f(self):\n        y = 1\nR = {"k": 2}\n',
            ["A", "A.x", "A.f", "R", 'R["k"]'],
        ),
    ],
)
def test_places_are_found_by_name(path, text, names):
    assert [name for name, _, _ in places.places(path, text)] == names


def test_what_stands_twice_or_nowhere_is_refused():
    text = "def f():\n    return 1 + 1\n"
    for place, old in (("f", "1"), ("f", "2"), ("g", "1 + 1")):
        with pytest.raises(ValueError, match="expected"):
            places.changed("a.py", text, place, old, "3")
    assert places.changed("a.py", text, "f", "1 + 1", "3") == "def f():\n    return 3\n"
