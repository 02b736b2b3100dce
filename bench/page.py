"""This module writes the table of docs/performance.md from the records of bench/run.py."""

from pathlib import Path

BEGIN, END = "<!-- bench/run.py writes what follows -->", "<!-- end of what bench/run.py writes -->"
NAMES = {"avx512": "AVX-512", "avx2": "AVX2", "baseline": "baseline"}


def write_page(path: str, host: dict, command: str, records: list[dict], calls: list[dict]) -> None:
    """Replace the text between the page's two marks. Raises ValueError if the page has no such marks."""
    page = Path(path)
    text = page.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{path} has no place for the table: add {BEGIN!r} and {END!r}, once each")
    before, rest = text.split(BEGIN)
    page.write_text(before + BEGIN + "\n" + table(host, command, records, calls) + END + rest.split(END)[1])


def table(host: dict, command: str, records: list[dict], calls: list[dict]) -> str:
    """Return the place and way of the measurement, a row for each path, and calls on one tile."""
    isas = [isa for isa in NAMES if any(r["isa"] == isa for r in records)]
    shares = sorted(100 * r["sgemm_share"] for r in records if "sgemm_share" in r)
    lines = [
        f"Measured here on {host['date']}: {host['cpu']}, {host['cpus']} cores, `{command}`, BLAS kernel {host['blas_core']}. "
        + (f"SGEMM ran at {shares[0]:.0f} to {shares[-1]:.0f} % of its own limit." if shares else ""),
        "",
        "| path | " + " | ".join(f"{NAMES[i]}: GMAC/s | x SGEMM | of the limit (SGEMM's own)" for i in isas) + " |",
        "|---|" + "---|" * (3 * len(isas)),
    ]
    found = {(r["name"], r["isa"]): r for r in records}
    for name in dict.fromkeys(r["name"] for r in records):
        lines.append(f"| {name} | " + " | ".join(_cells(found.get((name, isa))) for isa in isas) + " |")
    lines += ["", "| beside | call | microseconds | ratio |", "|---|---|---|---|"]
    lines += [
        f"| {r['benchmark']} | {r['path']} | {1e6 * r['median'] / r.get('calls', 1):.2f} | {r['ratio']:.2f} |"
        for r in calls
    ]
    return "\n".join(lines) + "\n"


def _cells(r: dict | None) -> str:
    """Return speed, ratio, share of the path's limit and SGEMM's share of its own; for methods, the ratio to one FDA
    product.
    """
    if r is None:
        return "| |"
    share = f"{r['fda_gemms']:.2f} FDA GEMMs" if "fda_gemms" in r else "not counted"
    if "share" in r:
        share = f"{100 * r['share']:.0f} % ({100 * r['sgemm_share']:.0f} %)"
    return f"{r['gmacs']:.3g} | {r['ratio']:.2f} | {share}"
