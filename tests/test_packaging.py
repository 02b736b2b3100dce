"""What the source distribution and the wheel hold, built by the PEP 517 backend from a copy of this tree."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "out", "*.egg-info", "__pycache__", "*.so", ".*_cache", ".hypothesis"
)
PACKAGES = ("tensorcore_models", "ascend", "mpgemm")


def build(kind: str, source: Path, target: Path) -> Path:
    """Run one hook of the backend named in pyproject.toml, in `source`; the file it made."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools", minversion="77")
    target.mkdir(exist_ok=True)
    code = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(target)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return target / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, folder / "tree", ignore=LEFT_OUT)
    return build("sdist", folder / "tree", folder / "dist")


def source_files() -> set[str]:
    """Files of the three packages that a build or an installed package needs."""
    kinds = {".py", ".pyx", ".pxd", ".pyi", ".h", ".toml", ".npz", ".typed", ".css", ".js"}
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in kinds or path.name == "py.typed"
    }


@pytest.mark.full
def test_the_sdist_holds_everything_to_build_and_test(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = source_files() - names
    assert not missing
    for name in (
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "Makefile",
        "pyproject.toml",
        "setup.py",
        "tests/conftest.py",
        "tests/test_packaging.py",
        "docs/data.md",
        "docs/playground/kernel.c",
        "docs/playground/js/page.js",
        "tools/make_shipped_matrices.py",
    ):
        assert name in names, name
    generated = [name for name in names if re.search(r"_kernels/.*\.(c|so)$", name)]
    assert not generated


def test_a_source_tree_without_kernels_says_how_to_build_them(tmp_path):
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=LEFT_OUT)
    command = [
        sys.executable,
        "-S",
        "-c",
        f"import sys; sys.path[:0] = {[str(tmp_path), *sys.path]!r}; import mpgemm; mpgemm.errors",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "kernels are not built: run `pip install -e .`" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_the_wheel_of_the_sdist_holds_the_packages_only(sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    wheel = build("wheel", source, tmp_path / "dist")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        tops = {name.partition("/")[0] for name in names}
        assert {top for top in tops if not top.endswith(".dist-info")} == {*PACKAGES, "pytest_mpgemm.py"}
        installed = {name for name in source_files() if not name.endswith((".pyx", ".pxd", ".h"))}
        assert not installed - names
        assert not [name for name in names if name.endswith((".pyx", ".pxd", ".h", ".c"))]
        kernels = {name for name in source_files() if name.endswith(".pyx")}
        compiled = {name.partition(".")[0] for name in names if name.endswith((".so", ".pyd"))}
        assert {name.removesuffix(".pyx") for name in kernels} == compiled
        (entry_points,) = (name for name in names if name.endswith("entry_points.txt"))
        assert "mpgemm = mpgemm.__main__:main" in archive.read(entry_points).decode()
        assert "[pytest11]\npytest_mpgemm = pytest_mpgemm" in archive.read(entry_points).decode()
        archive.extractall(tmp_path / "installed")
    code = "from mpgemm.cli import main; raise SystemExit(main(['evaluate', '--methods', 'sgemm_cube']))"
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "installed")}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "shipped:digits" in done.stdout


#: AMX's instructions by what their names begin with.
AMX = re.compile(r"\t(?:tdp|tileload|tilestore|tilezero|tilerelease|ldtilecfg|sttilecfg)")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump (binutils) is not installed")
def test_amx_instructions_stand_in_guarded_functions_only():
    """A CPU without AMX must never meet one: only functions that are called after mpg_amx_state said yes may hold them."""
    found = set()
    for path in [p for package in PACKAGES for p in (ROOT / package).rglob("*.so")]:
        listing = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True
        )
        function = ""
        for line in listing.stdout.splitlines():
            if line.endswith(">:"):
                function = line.partition("<")[2][:-2]
            elif AMX.search(line):
                assert function.startswith("mpg_amx_unit_"), f"{path.name}: {function}: {line.strip()}"
                found.add(function.partition(".")[0])
    if not found:
        pytest.skip("built without AMX: another architecture or an older compiler")
    assert found == {"mpg_amx_unit_step", "mpg_amx_unit_sgemm", "mpg_amx_unit_peak"}


def test_the_citation_has_what_a_doi_service_asks_for():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for key in ("cff-version", "title", "abstract", "keywords", "type", "license", "authors"):
        assert re.search(rf"^{key}:", text, re.M), key
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in text


def test_the_paper_cites_what_its_bibliography_has():
    """Every citation has an entry, every entry is cited, and works that CITATION.cff names, too, have the same DOI there."""
    entries = dict(
        re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", (ROOT / "paper/paper.bib").read_text(encoding="utf-8"), re.M | re.S)
    )
    paper = (ROOT / "paper/paper.md").read_text(encoding="utf-8")
    assert set(re.findall(r"@(\w+)", paper.partition("# Summary")[2])) == set(entries)
    dois = {match[1] for entry in entries.values() if (match := re.search(r"doi = \{(.+?)\}", entry))}
    cited = set(re.findall(r"^    doi: (\S+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M))
    assert len(cited) >= 8 and cited <= dois
