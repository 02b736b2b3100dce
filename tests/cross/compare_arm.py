"""Arm's rows against QEMU, random and edge inputs of each kind; a line for each row, exit status 1 if a bit differs.

python tests/cross/compare_arm.py [RESULTS]      # results of each kind and row, 100000 if not given
"""

import sys

import numpy as np

import tensorcore_models as tcm
from tensorcore_models.cpu_units import QemuEngine, qemu
from tensorcore_models.probing.random_operands import KINDS, operands


def compare(row: tcm.Instruction, results: int) -> int:
    """Results that differ, NaN payloads included."""
    engine = QemuEngine(row)
    rng = np.random.default_rng(31)
    wrong = 0
    for kind in KINDS:
        inputs = operands(row, kind, -(-results // (row.m * row.n)), rng)
        wrong += int(np.count_nonzero(engine.mma_bits(*inputs) != row.mma_bits(*inputs)))
    return wrong


def main() -> int:
    """The command line."""
    results = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    wrong = compared = 0
    for row in tcm.list_instructions("arm"):
        if qemu.unit_of(row) is None:
            continue
        if reason := qemu.status(row):
            print(f"{row}: not run: {reason}")
            continue
        differ = compare(row, results)
        compared += 1
        wrong += differ
        print(f"{row}: {differ} of {len(KINDS)} x {results} results differ", flush=True)
    if not compared:
        print(f"no row was compared; needs {qemu.COMPILER} and {qemu.EMULATOR}: {qemu.PACKAGES}")
    return int(wrong > 0 or not compared)


if __name__ == "__main__":
    sys.exit(main())
