"""The queries of valpey-smt-formalization, Table 4, for four units: what each found, and how fast. Needs the extra `smt`.

python tools/smt_table4.py [--timeout 60] [--witnesses]
"""

import argparse
import sys

from tensorcore_models.probing.formal.published import QUERIES, UNITS
from tensorcore_models.probing.formal.queries import Verdict


def main() -> int:
    parser = argparse.ArgumentParser(description="the queries of valpey-smt-formalization, Table 4")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each query")
    parser.add_argument("--witnesses", action="store_true", help="print the inputs, too")
    args = parser.parse_args()
    print("| query | " + " | ".join(UNITS) + " |")
    print("|---" * (1 + len(UNITS)) + "|")
    for query in QUERIES:
        verdicts = {name: asked(query, name, args.timeout) for name in UNITS}
        print(f"| {query.name} | " + " | ".join(cell(v) for v in verdicts.values()) + " |", flush=True)
        for name, verdict in verdicts.items():
            if args.witnesses and isinstance(verdict, Verdict) and verdict.witness is not None:
                print(f"{name}: {', '.join(map(hex, verdict.results))}\n{verdict.witness}")
    return 0


def asked(query, name: str, timeout: float) -> Verdict | TimeoutError:
    """What a query found; a search of several questions ends at the first that runs out of time."""
    try:
        return query.ask(name, timeout=timeout)
    except TimeoutError as error:
        return error


def cell(verdict: Verdict | TimeoutError) -> str:
    """A verdict in the table."""
    if isinstance(verdict, TimeoutError):
        return f"timeout ({verdict})"
    backend = f" ({verdict.backend})" if verdict.backend else ""
    return f"{verdict.status}, {verdict.seconds:.2f} s{backend}"


if __name__ == "__main__":
    sys.exit(main())
