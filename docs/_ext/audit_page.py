"""Writes the page of the papers' claims: ``python docs/_ext/audit_page.py > docs/audit.md``."""

import tomllib
from collections import Counter
from pathlib import Path

ROWS = Path(__file__).resolve().parents[1] / "audit.toml"
STANDINGS = ("agrees", "partly", "differs", "missing", "outside")
PAPERS = {
    "khattak": "Khattak and Mikaitis, *Accurate Models of NVIDIA Tensor Cores* (arXiv:2512.07004)",
    "xie": "Xie et al., *MMA-Sim* (arXiv:2511.10909)",
    "xue": "Xue et al., *SGEMM-cube* (arXiv:2507.23387v4)",
    "valpey": "Valpey et al., *An SMT Formalization of Mixed-Precision Matrix Multiplication* (NFM 2025)",
    "fasi": "Fasi et al., *Numerical Behavior of NVIDIA Tensor Cores* (PeerJ CS 7:e330)",
}

HEADER = """# The five papers, item by item

<!-- Generated from docs/audit.toml by `python docs/_ext/audit_page.py > docs/audit.md`; do not edit. -->

This page lists every table, figure, algorithm and quantitative claim of the five papers that this package implements, with the
command or the test that covers it. Numbers were measured here by the command of the row unless the row says predicted. The
standing of an item is one of these:

- *agrees*: the computation here has the same outcome.
- *partly*: a part of the item was computed, or the numbers agree within a spread that the row names.
- *differs*: the computation here gives another number; the row has both.
- *missing*: the item was not computed, for the reason in the row.
- *outside*: the item makes no claim about arithmetic, accuracy or time.

"""


def rows() -> dict[str, dict[str, list[str]]]:
    """Return [paper][key] with place, statement, standing, command or test, and numbers or reason of each item."""
    return tomllib.loads(ROWS.read_text(encoding="utf-8"))


def _proof(text: str) -> str:
    return f"`{text}`" if text else ""


def page() -> str:
    """Return the whole page as Markdown."""
    papers = rows()
    counts = Counter(row[2] for paper in papers.values() for row in paper.values())
    total = ", ".join(f"{counts[name]} with *{name}*" for name in STANDINGS if counts[name])
    lines = [HEADER + f"The page has {sum(counts.values())} items: {total}."]
    for paper, items in papers.items():
        lines += ["", f"## {PAPERS[paper]}", "", "| | place | statement | standing | command or test | numbers |"]
        lines += ["|---|---|---|---|---|---|"]
        for key, (place, statement, standing, proof, numbers) in items.items():
            lines.append(f"| {key} | {place} | {statement} | {standing} | {_proof(proof)} | {numbers} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
