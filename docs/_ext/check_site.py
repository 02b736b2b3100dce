"""Checks that the built site has every local link, anchor, picture and script, and loads nothing from the network.

``python docs/_ext/check_site.py out/site`` checks the site in a folder.
"""

import re
import sys
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

#: Attribute that names another file, for each tag that has one.
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


#: Pattern of a comment, or of a tag that may name another file. A parser of all tags takes three times as long.
TAG = re.compile(rf"<!--.*?-->|<({'|'.join(LINKS)})\s((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>", re.S)
ATTRIBUTE = re.compile(r"([\w-]+)=(?:\"([^\"]*)\"|'([^']*)')")
ANCHOR = re.compile(r"\s(?:id|name)=[\"']([^\"']+)[\"']")


@dataclass(frozen=True)
class Page:
    """`Page` holds the anchors and links of a page, and its pictures without an alternative text."""

    anchors: set[str]
    links: list[tuple[str, str]] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)


@cache
def read_page(path: Path) -> Page:
    """Return the anchors, links and pictures of a page."""
    text = path.read_text(encoding="utf-8")
    page = Page({unescape(name) for name in ANCHOR.findall(text)})
    for tag, attributes in TAG.findall(text):
        values = {name: unescape(double or single) for name, double, single in ATTRIBUTE.findall(attributes)}
        if tag and values.get(LINKS[tag]):
            page.links.append((tag, values[LINKS[tag]]))
        if tag == "img" and not values.get("alt"):
            page.silent.append(values.get("src", ""))
    return page


def complaints(site: Path) -> list[str]:
    """List the faults of a site, one line for each."""
    found = []
    for path in sorted(site.rglob("*.html")):
        page = read_page(path)
        where = path.relative_to(site)
        found += [f"{where}: the picture {source} has no text" for source in page.silent]
        for tag, target in page.links:
            fault = _fault(site, path if target.startswith("#") else path.parent / "page", tag, target)
            if fault:
                found.append(f"{where}: {fault}")
    return found


@cache
def _fault(site: Path, path: Path, tag: str, target: str) -> str:
    """Return the fault of a link, or an empty text; the cache serves the links that sidebars repeat."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        if tag == "a":
            return "" if parts.scheme in ("https", "mailto") else f"{target} is neither https nor local"
        return "" if parts.scheme == "data" else f"{tag} loads {target} from the network"
    address, anchor = urldefrag(target)
    file = path if not address else (path.parent / unquote(urlsplit(address).path)).resolve()
    if file.is_dir():
        file = file / "index.html"
    if not file.exists():
        return f"{target} does not exist"
    if not file.is_relative_to(site):
        return f"{target} is outside of the site"
    if (
        anchor
        and "=" not in anchor  # such an anchor holds values of the playground's fields
        and file.suffix == ".html"
        and anchor not in read_page(file).anchors
        and unquote(anchor) not in read_page(file).anchors
    ):
        return f"{target} has no such anchor"
    return ""


def main(argv: list[str]) -> int:
    """Check the site in a folder and return the exit status: 1 for faults, 2 if there are no pages."""
    site = Path(argv[0]).resolve()
    pages = sum(1 for _ in site.rglob("*.html"))
    if not pages:
        print(f"{site}: no pages", file=sys.stderr)
        return 2
    found = complaints(site)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{pages} pages, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
