"""Prepares a folder of built versions of the site for a static host: the list of versions, and a first page.

Run ``python docs/_ext/hosting.py out/hosted`` after each version was built into a folder with its name there.
"""

import json
import re
import sys
from pathlib import Path

_VERSION = re.compile(r"\d+(\.\d+)*\S*")


def versions(folder: Path) -> list[str]:
    """Return the versions in a folder, the newest first."""
    names = [path.parent.name for path in folder.glob("*/index.html") if _VERSION.fullmatch(path.parent.name)]
    return sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)


def finish(folder: Path) -> list[str]:
    """Write the list of versions, a page that leads to the newest, and GitHub Pages' file; return the versions.

    Raises
    ------
    ValueError
        If the folder has no version.
    """
    found = versions(folder)
    if not found:
        raise ValueError(f"{folder} has no version of the site: run make site")
    (folder / "versions.js").write_text(f"const MPGEMM_VERSIONS = {json.dumps(found)};\n", encoding="utf-8")
    (folder / ".nojekyll").write_text("", encoding="utf-8")
    newest = f"{found[0]}/index.html"
    (folder / "index.html").write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>mpgemm</title>'
        f'<meta http-equiv="refresh" content="0; url={newest}"></head>'
        f'<body><a href="{newest}">mpgemm {found[0]}</a></body></html>\n',
        encoding="utf-8",
    )
    return found


if __name__ == "__main__":
    try:
        print(f"{sys.argv[1]} is ready for a static host, with version {', '.join(finish(Path(sys.argv[1])))}")
    except ValueError as error:
        sys.exit(str(error))
