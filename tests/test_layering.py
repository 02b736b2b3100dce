"""The packages import in one direction only: tensorcore_models <- ascend <- mpgemm."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN = {
    "tensorcore_models": {"ascend", "mpgemm", "tests", "bench"},
    "ascend": {"mpgemm", "tests", "bench"},
    "mpgemm": {"tests", "bench"},
}


def imported_packages(path: Path) -> set[str]:
    """Top-level packages named by the import statements of a module, wherever they stand in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_point_down_only(package):
    wrong = {
        str(path.relative_to(ROOT)): sorted(imported_packages(path) & FORBIDDEN[package])
        for path in sorted((ROOT / package).rglob("*.py"))
        if imported_packages(path) & FORBIDDEN[package]
    }
    assert not wrong


@pytest.mark.parametrize("package", FORBIDDEN)
def test_kernels_import_down_only(package):
    for path in sorted((ROOT / package / "_kernels").glob("*.p[yx]*")):
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] in (["cimport"], ["import"], ["from"]):
                assert words[1].split(".")[0] not in FORBIDDEN[package], f"{path.name}: {line}"
