"""The page of the papers' claims: generated, its commands run, its tests exist."""

import re
from pathlib import Path

import audit_page
import pytest

from mpgemm.cli import main
from mpgemm.reproductions.rows import get_reproduction

ROOT = Path(__file__).resolve().parents[2]
ROWS = {key: row for paper in audit_page.rows().values() for key, row in paper.items()}
PROOFS = sorted({row[3] for row in ROWS.values()} - {""})
QUICK = [proof for proof in PROOFS if re.match(r"mpgemm (models|explain)\b", proof)]


def test_the_page_is_the_rows():
    assert audit_page.page() == (ROOT / "docs/audit.md").read_text(encoding="utf-8")


def test_rows_say_how_they_stand():
    assert len(ROWS) == 149
    for key, (place, statement, standing, proof, numbers) in ROWS.items():
        assert place and statement and standing in audit_page.STANDINGS, key
        assert proof or numbers, f"{key}: neither a command nor a reason"
        assert numbers or standing == "agrees", f"{key}: what differs has a number or a reason"


@pytest.mark.parametrize("proof", PROOFS)
def test_commands_and_tests_exist(proof):
    if not proof.startswith("mpgemm "):
        assert (ROOT / proof).is_file()
        return
    command, *words = proof.split()[1:]
    assert f"\n### {command}\n" in (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    if command == "reproduce":
        names = words[: words.index("--step-orders") if "--step-orders" in words else None]
        assert [get_reproduction(name).name for name in names] == names


@pytest.mark.parametrize("proof", QUICK)
def test_quick_commands_run(proof, capsys):
    assert main(proof.split()[1:]) == 0
    assert capsys.readouterr().out
