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


def imported_modules(path: Path, package: str) -> set[str]:
    """Modules of the package that a module imports, inside functions too; `from package import x` counts for nothing."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        found |= {name for name in names if name.startswith(f"{package}.")}
    return found


def test_ascend_has_no_import_circle():
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((ROOT / "ascend").rglob("*.py"))
        if path != ROOT / "ascend" / "__init__.py"
    }
    below = {name: imported_modules(path, "ascend") & modules.keys() for name, path in modules.items()}
    while free := [name for name, names in below.items() if not names]:
        below = {name: names - set(free) for name, names in below.items() if name not in free}
    assert not below, f"each of these imports another of them: {sorted(below)}"


@pytest.mark.parametrize("package", ("ascend",))
def test_no_module_uses_the_private_names_of_another(package):
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.ImportFrom):
                private = [a.name for a in node.names if a.name.startswith("_") and a.name != "_kernels"]
                assert not private, f"{path.name} imports {private} from {node.module}"


@pytest.mark.parametrize("package", FORBIDDEN)
def test_kernels_import_down_only(package):
    for path in sorted((ROOT / package / "_kernels").glob("*.p[yx]*")):
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] in (["cimport"], ["import"], ["from"]):
                assert words[1].split(".")[0] not in FORBIDDEN[package], f"{path.name}: {line}"


# -- modules of one package --------------------------------------------------------------------------------------------------
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in FORBIDDEN
    for path in sorted((ROOT / package).rglob("*.py"))
}


def imports_of(module: str) -> list[tuple[str, str, bool]]:
    """(module, name, whether inside of a function) of each import from the three packages."""
    path = MODULES[module]
    parts = module.split(".")
    package = parts if path.name == "__init__.py" else parts[:-1]
    found = []
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                found.append((whole if whole in MODULES else source, alias.name, node.col_offset > 0))
        elif isinstance(node, ast.Import):
            found += [(alias.name, alias.name, node.col_offset > 0) for alias in node.names]
    return [entry for entry in found if entry[0] in MODULES]


def test_no_module_imports_itself_by_a_detour():
    """Imports inside of functions count: one that hides a circle is a circle."""
    arrows = {module: {source for source, _, _ in imports_of(module)} - {module} for module in MODULES}
    while True:  # modules that import nothing, or that nothing imports, are part of no circle
        imported = set().union(*arrows.values())
        free = {module for module, sources in arrows.items() if not sources or module not in imported}
        if not free:
            break
        arrows = {module: sources - free for module, sources in arrows.items() if module not in free}
    assert not arrows, f"circles among {sorted(arrows)}"


def test_private_names_stay_in_their_module():
    wrong = [
        f"{module}: {source}.{name}"
        for module in MODULES
        for source, name, _ in imports_of(module)
        if name.startswith("_") and name != "_kernels"
    ]
    for module, path in MODULES.items():
        modules = {name for _, name, _ in imports_of(module) if any(m.endswith(f".{name}") for m in MODULES)}
        wrong += [
            f"{module}: {node.value.id}.{node.attr}"
            for node in ast.walk(ast.parse(path.read_text(), str(path)))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
        ]
    assert not wrong
