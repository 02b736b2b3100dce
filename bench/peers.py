"""This benchmark compares this package with other packages on PyPI: the same work, differences counted, times as ratios.

    python bench/peers.py [--quick] [--venv build/peers] [--json out/peers.json] [--page docs/peers.md]

It makes the environment `--venv` with the peers and this package's dependencies, and runs itself there on this
checkout, whose kernels must be built. Operands are drawn from fixed seeds. A ratio is the peer's median time over this
package's, interleaved: above 1, this package is faster. Recordings of GPUs (tests/vectors) are given to both, to show
which one is right.
"""

import importlib.metadata
import os
import subprocess
import sys
import venv
from pathlib import Path

from harness import machine, prepared, write_json

ROOT = Path(__file__).resolve().parents[1]
INSIDE = "MPGEMM_PEERS"
PACKAGES = ("numpy", "ml_dtypes", "mpmath", "mmasim", "mmaemu", "gfloat")
BEGIN, END = "<!-- bench/peers.py writes what follows -->", "<!-- end of what bench/peers.py writes -->"


def python_with_peers(folder: Path) -> Path:
    """Return the Python of the environment `folder` with the peers installed; the environment is made if missing."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def table(records: list[dict], command: str) -> str:
    """Return the records in Markdown, under the place and way of the measurement."""
    host = machine()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    lines = [
        f"Measured here on {host['date']}: {host['cpu']}, one thread, `{command}`, {versions}.",
        "",
        "| peer | work | what is covered | results | differ | where | time, peer over this package |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in records:
        times = "" if r["ratio"] is None else f"{r['ratio']:.3g}"
        lines.append(
            f"| {r['peer']} | {r['work']} | {r['covered']} | {r['results']:,} | {r['differ']:,} | {r['who']} | {times} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    args = prepared(__doc__, core=None, quick=False, page=None, venv="build/peers")
    if os.environ.get(INSIDE) != "1":
        python = python_with_peers(Path(args.venv))
        environment = os.environ | {INSIDE: "1", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        raise SystemExit(subprocess.run([python, *sys.argv], env=environment).returncode)
    import peer_pairs

    import tensorcore_models as tcm

    tcm.set_num_threads(args.threads)
    peer_pairs.torch.set_num_threads(args.threads)
    records = []
    for part in peer_pairs.PARTS:
        for row in part(args.quick):
            records.append(row._asdict())
            print(
                f"{row.peer:12} {row.work:52} {row.results:>9,} results, {row.differ:>7,} differ  {row.ratio or '':.5}"
            )
    if args.json:
        write_json(args.json, {"machine": machine(), "rows": records})
    if args.page:
        write_page(Path(args.page), table(records, "python bench/peers.py" + " --quick" * args.quick))


def write_page(page: Path, text: str) -> None:
    """Replace the text between the page's two marks. Raises ValueError if the page has no such marks."""
    old = page.read_text(encoding="utf-8")
    if old.count(BEGIN) != 1 or old.count(END) != 1:
        raise ValueError(f"{page} has no place for the table: add {BEGIN!r} and {END!r}, once each")
    before, rest = old.split(BEGIN)
    page.write_text(before + BEGIN + "\n" + text + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
