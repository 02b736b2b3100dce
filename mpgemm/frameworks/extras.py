"""Optional libraries, imported where they are used."""

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Return the module, or an error that names the extra which brings it.

    module: What to import.
    extra: Extra of this package that installs it.
    Raises ImportError if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"this needs {error.name}, which is not installed: pip install 'mpgemm[{extra}]'") from None
