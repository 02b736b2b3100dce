"""The packages import in one direction only: tensorcore_models <- ascend <- mpgemm."""

import ast
import gc
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tensorcore_models.families import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN = {
    "tensorcore_models": {"ascend", "mpgemm", "tests", "bench"},
    "ascend": {"mpgemm", "tests", "bench"},
    "mpgemm": {"tests", "bench"},
}


@pytest.fixture(autouse=True, scope="module")
def _no_collections():
    """Syntax trees are millions of objects that stay: collections look through them again and again."""
    gc.disable()
    yield
    gc.enable()


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax of a module, which every test here reads."""
    return ast.parse(path.read_text(), str(path))


@cache
def calls_and_imports(path: Path) -> tuple[ast.AST, ...]:
    """The calls and import statements of a module, wherever they stand in it: walking a module takes longest here."""
    return tuple(node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call))


def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The import statements of a module."""
    return [node for node in calls_and_imports(path) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports_by_string(nodes: Iterable[ast.AST]) -> list[str]:
    """Modules that `import_module` or `__import__` is given as text."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                found.append(node.args[0].value)
    return found


def imported_packages(path: Path) -> set[str]:
    """Top-level packages that a module imports, by statements or by text, wherever they stand in it."""
    names = {name.split(".")[0] for name in imports_by_string(calls_and_imports(path))}
    for node in imports(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_point_down_only(package):
    wrong = {
        str(path.relative_to(ROOT)): sorted(above)
        for path in sorted((ROOT / package).rglob("*.py"))
        if (above := imported_packages(path) & FORBIDDEN[package])
    }
    assert not wrong


def imported_modules(path: Path, package: str) -> set[str]:
    """Modules of the package that a module imports, inside functions too; `from package import x` counts for nothing."""
    found = set()
    for node in imports(path):
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
        for node in imports(path):
            if isinstance(node, ast.ImportFrom):
                private = [a.name for a in node.names if a.name.startswith("_") and a.name != "_kernels"]
                assert not private, f"{path.name} imports {private} from {node.module}"


KERNELS = [
    path for package in FORBIDDEN for path in (ROOT / package).rglob("*") if path.suffix in (".pyx", ".pxd", ".pxi")
]


def test_kernels_import_down_only():
    """Cython's imports of other packages; the packages of the kernels are those of the Python beside them."""
    assert len(KERNELS) > 10
    for path in KERNELS:
        package = path.relative_to(ROOT).parts[0]
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


@cache
def imports_of(module: str) -> list[tuple[str, str, bool]]:
    """(module, name, whether inside of a function) of each import from the three packages, those for type checkers too."""
    path = MODULES[module]
    parts = module.split(".")
    package = parts if path.name == "__init__.py" else parts[:-1]
    found = [(name, name, True) for name in imports_by_string(calls_and_imports(path))]
    for node in imports(path):
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


def rooms_and_arrows(entries: Iterable[tuple[str, str]]) -> dict[str, dict[str, set[str]]]:
    """For each folder the arrows between what stands in it, files and folders, of pairs (module, module that it imports)."""
    found: dict[str, dict[str, set[str]]] = {}
    for module, source in entries:
        here, there = module.split("."), source.split(".")
        shared = next((i for i, (x, y) in enumerate(zip(here, there, strict=False)) if x != y), 0)
        if shared:  # 0 also where one is the other's package
            arrows = found.setdefault(".".join(here[:shared]), {})
            arrows.setdefault(here[shared], set()).add(there[shared])
            arrows.setdefault(there[shared], set())
    return found


def circles(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """What is left of a graph once nodes that point nowhere, and then those that only point to them, are taken away."""
    while free := {name for name, sources in arrows.items() if not sources}:
        arrows = {name: sources - free for name, sources in arrows.items() if name not in free}
    return arrows


def test_rooms_import_in_one_direction():
    """`formats` stands below `families`, both below `engines`: no room imports what imports it, not even elsewhere.

    That holds in every folder of the three packages, for the folders and files in it.
    """
    folders = rooms_and_arrows((module, source) for module in MODULES for source, _, _ in imports_of(module))
    assert set(FORBIDDEN) <= folders.keys() and all(len(folders[package]) > 10 for package in FORBIDDEN)
    wrong = {folder: found for folder, arrows in folders.items() if (found := circles(arrows))}
    assert not wrong, f"circles, or rooms above them: {wrong}"


def test_a_circle_of_rooms_is_found():
    pairs = [("p.a.x", "p.b.y"), ("p.b.z", "p.c"), ("p.c", "p.a.w"), ("p.a.x", "p.a.w"), ("p.d", "p.a"), ("p", "p.a.x")]
    assert rooms_and_arrows(pairs) == {
        "p": {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}},
        "p.a": {"x": {"w"}, "w": set()},
    }
    assert circles(rooms_and_arrows(pairs)["p"]) and not circles(rooms_and_arrows(pairs[:2])["p"])


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
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
        ]
    assert not wrong


# -- families of accumulators ------------------------------------------------------------------------------------------------
#: What stands below the families: they use it, it knows none of them.
BELOW = ("arithmetic", "aspects", "bitvectors", "explanations", "reference", "formats", "_kernels")
BELOW_MODULES = {f"tensorcore_models.{name}" for name in ("integers", "results", "machine.fp_state")}
FAMILIES_PACKAGE = "tensorcore_models.families"


def is_below(module: str) -> bool:
    return module in BELOW_MODULES or any(
        module == f"tensorcore_models.{name}" or module.startswith(f"tensorcore_models.{name}.") for name in BELOW
    )


def in_families(module: str) -> bool:
    return module == FAMILIES_PACKAGE or module.startswith(f"{FAMILIES_PACKAGE}.")


def test_families_import_only_what_stands_below_them():
    inside = [module for module in MODULES if in_families(module)]
    assert len(inside) > 15
    wrong = [
        f"{module}: {source}"
        for module in inside
        for source, _, _ in imports_of(module)
        if not in_families(source) and not is_below(source)
    ]
    assert not wrong


def test_what_stands_below_the_families_knows_none_of_them():
    above = ("accumulators", "families", "engines", "kernels", "catalogue", "probing", "atlas", "libraries", "hardware")
    names = {f"tensorcore_models.{name}" for name in above}
    inside = [m for m in MODULES if is_below(m) and ".formats" not in m and "_kernels" not in m]
    assert len(inside) > 15
    wrong = [
        f"{module}: {source}"
        for module in inside
        for source, _, _ in imports_of(module)
        if ".".join(source.split(".")[:2]) in names
    ]
    assert not wrong


def named(node: ast.AST) -> set[str]:
    """The last names of everything that an expression mentions."""
    found = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
    return found | {x.attr for x in ast.walk(node) if isinstance(x, ast.Attribute)}


def questions_of_type(tree: ast.AST, classes: set[str]) -> list[int]:
    """Lines that ask whether something is of one of these classes, or look a class up."""
    lines = []
    for node in ast.walk(tree):
        asked: set[str] = set()
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("isinstance", "issubclass") and len(node.args) == 2:
                asked = named(node.args[1])
            elif name == "register":
                asked = set().union(*map(named, node.args))
        elif isinstance(node, ast.Compare) and "type" in named(node.left):
            asked = set().union(*map(named, node.comparators))
        elif isinstance(node, ast.Dict):
            asked = {x for key in node.keys if isinstance(key, ast.Name | ast.Attribute) for x in named(key)}
        elif isinstance(node, ast.match_case):
            asked = named(node.pattern)
        elif isinstance(node, ast.FunctionDef) and any("register" in named(x) for x in node.decorator_list):
            asked = set().union(*(named(a.annotation) for a in node.args.args if a.annotation))
        if asked & classes:
            lines.append(node.lineno)
    return lines


def test_nothing_outside_of_the_families_asks_for_a_family():
    classes = {family.__name__ for family in FAMILIES}
    assert len(classes) >= 12
    wrong = [
        f"{module}, line {line}"
        for module, path in MODULES.items()
        if not in_families(module)
        for line in questions_of_type(parsed(path), classes)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "code",
    (
        "isinstance(x, FusedDotAdd)",
        "isinstance(x, acc.FusedDotAdd | LanedFMA)",
        "type(x) is FusedDotAdd",
        "{FusedDotAdd: 1}",
        "@words_of.register\ndef f(x: FusedDotAdd): ...",
    ),
)
def test_a_question_for_a_family_is_found(code):
    assert questions_of_type(ast.parse(code), {"FusedDotAdd"}) and not questions_of_type(ast.parse(code), {"Other"})


def test_imports_by_text_are_found():
    tree = ast.parse('def f():\n    return importlib.import_module("mpgemm.cli"), import_module(name)')
    assert imports_by_string(ast.walk(tree)) == ["mpgemm.cli"]
