"""A folder of built versions of the site, made ready for a static host: the list that the switch shows, and a first page.

``python docs/_ext/hosting.py out/hosted`` after each version was built into a folder of its name there.
"""

import json
import re
import sys
from pathlib import Path

_VERSION = re.compile(r"\d+(\.\d+)*\S*")


def versions(folder: Path) -> list[str]:
    """Return the versions that are there, the newest first."""
    names = [path.parent.name for path in folder.glob("*/index.html") if _VERSION.fullmatch(path.parent.name)]
    return sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)


def finish(folder: Path) -> list[str]:
    """Write the list of versions, the page that leads to the newest, and what GitHub Pages needs; the versions.

    Raises
    ------
    ValueError
        If no version is there.
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
