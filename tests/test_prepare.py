"""tools/prepare.py: one environment and one build for all targets; what is stale or foreign is found, and a line says so."""

import os
import runpy
import subprocess
import sys
import sysconfig

import prepare
import pytest


@pytest.fixture
def venv(tmp_path):
    """A folder that looks like an environment of this Python."""
    folder = tmp_path / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "bin" / "pip").write_text(f"#!{folder}/bin/python\n")
    return folder


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A project with one kernel that is built and up to date."""
    for package in prepare.PACKAGES:
        (tmp_path / package / "_kernels").mkdir(parents=True)
    (tmp_path / "setup.py").touch()
    kernels = tmp_path / "ascend" / "_kernels"
    (kernels / "a.pyx").touch()
    (kernels / "a.h").touch()
    (kernels / f"a{sysconfig.get_config_var('EXT_SUFFIX')}").touch()
    monkeypatch.setattr(prepare, "ROOT", tmp_path)
    return tmp_path


def test_an_environment_of_this_python_is_kept(venv):
    assert prepare.fault(venv) is None


def test_foreign_environments_are_found(venv):
    (venv / "bin" / "pip").write_text("#!/elsewhere/.venv/bin/python\n")
    assert prepare.fault(venv) == "it was made in another folder"
    (venv / "bin" / "pip").unlink()
    assert prepare.fault(venv) == "it has no pip"
    python = venv / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\necho 3.5\n")
    python.chmod(0o755)
    assert prepare.fault(venv).startswith("Python 3.5 made it, but this is Python 3.")
    python.write_text("#!/bin/sh\nexit 1\n")
    assert prepare.fault(venv) == "its Python does not start"
    python.unlink()
    assert prepare.fault(venv) == "its Python does not start"


def test_stale_kernels_are_found(tree):
    python = sys.executable
    assert prepare.kernels_are_stale(python) is None
    header = tree / "ascend" / "_kernels" / "a.h"
    later = header.stat().st_mtime + 10
    os.utime(header, (later, later))
    assert prepare.kernels_are_stale(python) == "sources of kernels changed"
    (tree / "ascend" / "_kernels" / f"a{sysconfig.get_config_var('EXT_SUFFIX')}").rename(
        header.with_name("a.cpython-30.so")
    )
    assert prepare.kernels_are_stale(python) == "1 of 1 kernels are not built for this Python (others are there)"
    header.with_name("a.cpython-30.so").unlink()
    assert prepare.kernels_are_stale(python) == "1 of 1 kernels are not built"


def test_a_missing_compiler_is_one_line(tree, monkeypatch):
    (tree / "setup.py").touch()
    (tree / "ascend" / "_kernels" / "b.pyx").touch()
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(
        prepare.CannotPrepare, match="no C compiler: 'no-such-compiler' is not there; install gcc or clang"
    ):
        prepare.compile_kernels(sys.executable)


def test_a_full_disk_is_one_line():
    command = "import sys; print('cc1: error: No space left on device'); sys.exit(1)"
    with pytest.raises(prepare.CannotPrepare, match=r"the disk is full: \d+ MiB are free, 1000 are needed$"):
        prepare.run(sys.executable, "-c", command, quiet=True)


def test_other_failures_show_what_was_printed(capsys):
    with pytest.raises(prepare.CannotPrepare, match="failed with status 3: see above"):
        prepare.run(sys.executable, "-c", "import sys; print('why'); sys.exit(3)")
    assert capsys.readouterr().err == "why\n"


def test_the_makefile_asks_for_groups_that_exist():
    root = prepare.ROOT
    groups = prepare.tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]
    asked = [
        line.split()[1:] for line in (root / "Makefile").read_text().splitlines() if line.startswith("\t$(PREPARE)")
    ]
    assert {word for words in asked for word in words} <= groups.keys() and ["test"] in asked
    done = subprocess.run(["make", "-n", "test", "evaluate"], cwd=root, capture_output=True, text=True)
    assert done.stdout.count("tools/prepare.py") == 2, done.stderr


def test_every_header_makes_the_extensions_that_read_it_compile_again(monkeypatch):
    monkeypatch.chdir(prepare.ROOT)
    pytest.importorskip("Cython.Build")
    monkeypatch.setattr("Cython.Build.cythonize", lambda extensions, **options: extensions)
    built = {}
    monkeypatch.setattr("setuptools.setup", lambda **options: built.update(options))
    runpy.run_path("setup.py")
    depends = {extension.name: set(extension.depends) for extension in built["ext_modules"]}
    headers = [path for name in prepare.PACKAGES for path in (prepare.Path(name) / "_kernels").rglob("*.h")]
    assert headers and not {str(path) for path in headers} - set().union(*depends.values())
    # Its own .pxd names the headers of the generic kernel.
    assert (
        "tensorcore_models/_kernels/generic/generic_number.h" in depends["tensorcore_models._kernels.generic.generic"]
    )
    assert "tensorcore_models/_kernels/generic/generic_number.h" not in depends["mpgemm._kernels.exact"]
