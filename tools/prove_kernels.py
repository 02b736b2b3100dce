"""This tool proves the lemmas of docs/proofs.md, a line for each; it needs the extra `smt`.

    python tools/prove_kernels.py [--timeout 600] [--kernel narrow|down|wide|groups|integer]

The exit status is 1 if a lemma is not proved.
"""

import argparse
import sys

from kernel_proofs.lemmas import prove
from kernel_proofs.proofs import CASES, KERNELS


def main() -> int:
    parser = argparse.ArgumentParser(description="prove the lemmas of docs/proofs.md")
    parser.add_argument("--timeout", type=float, default=600.0, help="time limit of each lemma in seconds")
    parser.add_argument("--kernel", choices=KERNELS, help="prove the lemmas of these lanes only")
    args = parser.parse_args()
    seen: set[str] = set()
    failed = 0
    for case in CASES:
        if args.kernel not in (None, case.kernel):
            continue
        for lemma in case.lemmas():
            if lemma.name in seen:
                continue
            seen.add(lemma.name)
            proof = prove(lemma, timeout=args.timeout)
            failed += proof.status != "proved"
            print(f"{proof.status:9} {proof.seconds:7.2f} s  {proof.backend:11} {lemma.name}", flush=True)
    print(f"{len(seen)} lemmas, {failed} not proved")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
