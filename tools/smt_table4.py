"""The queries of valpey-smt-formalization, Table 4, for four units: what each found, and how fast. Needs the extra `smt`.

python tools/smt_table4.py [--timeout 60] [--witnesses]
"""

import argparse
import sys

from tensorcore_models.probing.formal.published import QUERIES, UNITS


def main() -> int:
    parser = argparse.ArgumentParser(description="the queries of valpey-smt-formalization, Table 4")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each query")
    parser.add_argument("--witnesses", action="store_true", help="print the inputs, too")
    args = parser.parse_args()
    print("| query | " + " | ".join(UNITS) + " |")
    print("|---" * (1 + len(UNITS)) + "|")
    for query in QUERIES:
        verdicts = [query.ask(name, timeout=args.timeout) for name in UNITS]
        cells = [f"{v.status}, {v.seconds:.2f} s ({v.backend})" for v in verdicts]
        print(f"| {query.name} | " + " | ".join(cells) + " |", flush=True)
        for name, verdict in zip(UNITS, verdicts, strict=True):
            if args.witnesses and verdict.witness is not None:
                print(f"{name}: {', '.join(map(hex, verdict.results))}\n{verdict.witness}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
