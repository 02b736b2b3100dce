"""Finds the documentation: a published site, or the site that `make docs` built in a checkout."""

import os
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

#: Environment variable that holds the address or folder of the site.
VARIABLE = "MPGEMM_DOCS"
_BUILT = Path(__file__).resolve().parents[2] / "out" / "site"


def _published() -> str:
    """Return the documentation's address in the distribution's metadata, "" if there is none."""
    try:
        entries = metadata("mpgemm").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(entry.partition(", ")[::2] for entry in entries)
    return named.get("Documentation", "")


def page_address(page: str) -> str:
    """Return the address of a page from its path below the site's root; raise ValueError if no site is known."""
    base = os.environ.get(VARIABLE) or _published()
    if not base and (_BUILT / "index.html").exists():
        base = str(_BUILT)
    if not base:
        raise ValueError(
            f"no documentation site is known for {page}; run `make docs` in a checkout, or set {VARIABLE} to a "
            f"site's address or folder"
        )
    if "://" not in base:
        base = Path(base).expanduser().resolve().as_uri()
    return f"{base.rstrip('/')}/{page}"
