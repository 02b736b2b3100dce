"""Checks the built site: every local link, anchor, picture and script is there, and nothing is loaded from the network.

``python docs/_ext/check_site.py out/site``
"""

import re
import sys
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

#: Attributes that name another file, by tag.
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


#: A comment, or a tag that may name another file: a parser of all tags takes three times as long over fifty megabytes.
TAG = re.compile(rf"<!--.*?-->|<({'|'.join(LINKS)})\s((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>", re.S)
ATTRIBUTE = re.compile(r"([\w-]+)=(?:\"([^\"]*)\"|'([^']*)')")
ANCHOR = re.compile(r"\s(?:id|name)=[\"']([^\"']+)[\"']")


@dataclass(frozen=True)
class Page:
    """Anchors and links of one page; pictures without a text."""

    anchors: set[str]
    links: list[tuple[str, str]] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)


@cache
def read_page(path: Path) -> Page:
    """Return a page taken apart."""
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
    """Return a link's fault; of another file's it is asked once for each folder, as sidebars repeat the same links."""
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
        and "=" not in anchor  # what the playground's fields hold
        and file.suffix == ".html"
        and anchor not in read_page(file).anchors
        and unquote(anchor) not in read_page(file).anchors
    ):
        return f"{target} has no such anchor"
    return ""


def main(argv: list[str]) -> int:
    """Check the site of a folder; 1 if something is wrong."""
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
