"""Imports optional libraries where they are used."""

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import and return an optional module.

    module: Name of the module.
    extra: Extra of this package that installs it.
    Raises ImportError, which names the extra, if the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"this needs {error.name}, which is not installed: pip install 'mpgemm[{extra}]'") from None
