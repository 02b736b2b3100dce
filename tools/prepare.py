"""This tool prepares a virtual environment for a target of the Makefile: packages, kernels, dependency groups.

    python3 tools/prepare.py VENV [GROUP ...]

Every target shares one environment and one build of the kernels. Packages are installed if pyproject.toml changed,
kernels are compiled if their sources changed. An environment that another Python made, or that was copied from another
folder, is made anew. Each of these steps prints a line. The tool needs only the standard library, because it runs
before any package is installed.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("tensorcore_models", "ascend", "mpgemm")


class CannotPrepare(Exception):
    """`CannotPrepare` says in one line why the environment cannot be prepared."""


def run(*command: str | Path, quiet: bool = False) -> str:
    """Run a command in the project's folder and return its output, shown while it runs unless `quiet`.

    Raises CannotPrepare if it fails: with one line for a full disk, else after the end of the command's output.
    """
    lines = []
    with subprocess.Popen(
        list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            if not quiet and line.startswith("compiling "):
                print(line, end="", flush=True)
    if process.returncode:
        output = "".join(lines)
        if "No space left on device" in output:
            raise CannotPrepare(f"the disk is full: {shutil.disk_usage(ROOT).free >> 20} MiB are free, 1000 are needed")
        print(output[-4000:].rstrip(), file=sys.stderr)
        raise CannotPrepare(f"{Path(command[0]).name} {command[1]} failed with status {process.returncode}: see above")
    return "".join(lines)


def fault(venv: Path) -> str | None:
    """Return the fault of an existing environment, or None if it can be used."""
    python = venv / "bin" / "python"
    asked = "import sys; print(*sys.version_info[:2], sep='.')"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True) if python.exists() else None
    here = ".".join(map(str, sys.version_info[:2]))
    if done is None or done.returncode:
        return "its Python does not start"
    if done.stdout.strip() != here:
        return f"Python {done.stdout.strip()} made it, but this is Python {here}"
    pip = venv / "bin" / "pip"
    if not pip.exists():
        return "it has no pip"
    if str(venv) not in pip.read_text(errors="replace").splitlines()[0]:
        return "it was made in another folder"
    return None


def create(venv: Path) -> None:
    """Make an environment, unless there is one that can be used."""
    if venv.exists():
        reason = fault(venv)
        if reason is None:
            return
        print(f"{venv.name}: {reason}; making it anew", flush=True)
        shutil.rmtree(venv)
    run(sys.executable, "-m", "venv", venv, quiet=True)


def kernels_are_stale(python: Path) -> str | None:
    """Return why kernels must be compiled, or None if each stands beside its source and is newer than its sources."""
    suffix = run(python, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))", quiet=True).strip()
    sources = [path for name in PACKAGES for path in (ROOT / name / "_kernels").rglob("*")]
    built = [path.with_suffix(suffix) for path in sources if path.suffix == ".pyx"]
    missing = [path for path in built if not path.exists()]
    if missing:
        others = any(path.suffix in (".so", ".pyd") for path in sources)
        where = " for this Python (others are there)" if others and len(missing) == len(built) else ""
        return f"{len(missing)} of {len(built)} kernels are not built{where}"
    inputs = [path for path in sources if path.suffix in (".pyx", ".pxd", ".h")] + [ROOT / "setup.py"]
    newest = max(path.stat().st_mtime for path in inputs)
    return "sources of kernels changed" if newest > min(path.stat().st_mtime for path in built) else None


def compile_kernels(python: Path) -> None:
    """Compile stale kernels beside their sources; an extension with unchanged sources is kept."""
    reason = kernels_are_stale(python)
    if reason is None:
        return
    asked = "import sysconfig; print(sysconfig.get_config_var('CC') or 'cc')"
    compiler = os.environ.get("CC") or run(python, "-c", asked, quiet=True).strip()
    if shutil.which(compiler.split()[0]) is None:
        raise CannotPrepare(f"no C compiler: {compiler.split()[0]!r} is not there; install gcc or clang, or set CC")
    print(f"{reason}: compiling them, at most two minutes of two cores", flush=True)
    run(python, "setup.py", "-q", "build_ext", "--inplace")
    for path in (path for name in PACKAGES for path in (ROOT / name / "_kernels").rglob("*.so")):
        path.touch()  # a kept kernel is up to date, too


def install(venv: Path, groups: list[str]) -> None:
    """Install the package in editable form with its dependencies and dependency groups, unless they are installed."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    stamp = venv / "mpgemm-prepared.json"
    state = {"pyproject": hashlib.sha256(text.encode()).hexdigest(), "groups": []}
    if stamp.exists() and (before := json.loads(stamp.read_text()))["pyproject"] == state["pyproject"]:
        state = before
        groups = [group for group in groups if group not in state["groups"]]
        new = False
    else:
        new = True
    python = venv / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet")
    packages = [word for group in groups for word in ("--group", group)]
    if new:
        project = tomllib.loads(text)
        # `--group` needs a recent pip.
        run(*pip, "--upgrade", "pip", *project["build-system"]["requires"], quiet=True)
        packages += project["project"]["dependencies"] + project["project"]["optional-dependencies"]["plot"]
    with ThreadPoolExecutor(max_workers=1) as background:  # pip waits for the network while compilers run
        installed = background.submit(run, *pip, *packages, quiet=True) if packages else None
        compile_kernels(python)
        if installed:
            installed.result()
    if new:
        run(*pip, "--no-build-isolation", "--editable", ".[plot]", quiet=True)
        # An editable install compiles no Python; if PYTHONDONTWRITEBYTECODE is set (containers), every start would compile it.
        run(python, "-m", "compileall", "-q", *PACKAGES, quiet=True)
    if new or groups:
        state["groups"] += groups
        stamp.write_text(json.dumps(state))


def main() -> int:
    venv, groups = (ROOT / sys.argv[1]).absolute(), sys.argv[2:]
    try:
        create(venv)
        install(venv, groups)
    except CannotPrepare as error:
        print(f"make: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"make: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
