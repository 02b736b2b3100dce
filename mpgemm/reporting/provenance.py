"""Records the environment in which a result was computed: versions, hash of the code, and machine."""

import functools
import hashlib
import importlib
import platform
from pathlib import Path

import numpy as np


def package_version() -> str:
    """Return the version of the installed distribution, or "source" in a checkout that is not installed."""
    import importlib.metadata  # imported here because it takes a tenth of the import time of mpgemm

    try:
        return importlib.metadata.version("mpgemm")
    except importlib.metadata.PackageNotFoundError:
        return "source"


@functools.cache
def code_digest() -> str:
    """Return a hash of the three packages' Python and compiled files; a journal does not reuse results of other code."""
    digest = hashlib.sha256()
    for package in ("tensorcore_models", "ascend", "mpgemm"):
        for root in importlib.import_module(package).__path__:
            for path in sorted(Path(root).rglob("*")):
                if path.suffix in (".py", ".so", ".pyd", ".toml"):
                    digest.update(f"{package}/{path.relative_to(root).as_posix()}\n".encode())
                    digest.update(path.read_bytes())
    return digest.hexdigest()


def environment() -> dict:
    """Return the versions of the software, and the machine, with which results are computed."""
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "mpgemm": package_version(),
        "code": code_digest(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "machine": platform.machine(),
    }
