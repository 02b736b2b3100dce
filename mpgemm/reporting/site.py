"""Where the documentation is: a published site, or the one that `make docs` built in a checkout."""

import os
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

#: Environment variable with the address or folder of the site.
VARIABLE = "MPGEMM_DOCS"
_BUILT = Path(__file__).resolve().parents[2] / "out" / "site"


def _published() -> str:
    """Return the address that the distribution's metadata name as documentation; empty where they name none."""
    try:
        entries = metadata("mpgemm").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(entry.partition(", ")[::2] for entry in entries)
    return named.get("Documentation", "")


def page_address(page: str) -> str:
    """Return the address of a page by its path below the site's root. Raises ValueError if no site is known: what to do."""
    base = os.environ.get(VARIABLE) or _published()
    if not base and (_BUILT / "index.html").exists():
        base = str(_BUILT)
    if not base:
        raise ValueError(
            f"no documentation site is known for {page}: run `make docs` in a checkout, or set {VARIABLE} to a "
            f"site's address or folder"
        )
    if "://" not in base:
        base = Path(base).expanduser().resolve().as_uri()
    return f"{base.rstrip('/')}/{page}"
