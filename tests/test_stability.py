"""Public names stand in docs/public_names.csv with the version since which they do: one that goes or comes shows here."""

import csv
import re
import tomllib
from pathlib import Path

import pytest
from public_names import MODULES, offered

ROOT = Path(__file__).resolve().parents[1]
with (ROOT / "docs" / "public_names.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))


@pytest.mark.parametrize("module", MODULES)
def test_the_list_has_every_public_name_and_no_other(module):
    listed = [row["name"] for row in ROWS if row["module"] == module]
    assert listed == offered(ROOT, module), (
        "add the name with the next version; remove one only as docs/stability.md says"
    )
    assert listed


def test_versions_are_those_of_the_change_log():
    versions = (ROOT / "docs" / "stability.md").read_text().split("## Versions")[1]
    known = set(re.findall(r"\b(\d+\.\d+)(?:\.\d+)?\b", versions))
    assert {row["module"] for row in ROWS} == set(MODULES)
    assert {row["since"] for row in ROWS} == {"0.1", "0.2"} <= known
    current = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert current.rpartition(".")[0] in known


def test_the_first_screens_link_to_the_promise():
    for page in ("README.md", "docs/index.md"):
        assert "stability.md" in (ROOT / page).read_text()
