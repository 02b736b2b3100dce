"""Runs the gate on every method, target and configuration, and keeps the cases that passed, so that a later run resumes.

``python -m mpgemm.kernels.whole_gate [TARGET ...] [--out FILE]`` exits with 1 if a bit differs or a machine stops a kernel.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mpgemm.kernels.configurations import DESCRIBED, configurations, word_configurations
from mpgemm.kernels.forms import KERNELS, kernel_form, kernel_method
from mpgemm.kernels.gate import GateCase, GateRun, ResidueCase
from mpgemm.kernels.recipes import recipe
from mpgemm.kernels.residues import RESIDUES, residue_tile
from mpgemm.kernels.targets import MISSING
from mpgemm.recovery.methods import get_method
from tensorcore_models.compiled import KernelFault, Refused
from tensorcore_models.gpu.targets import TARGETS, KernelTarget, get_target

#: Numbers of moduli of Ozaki's scheme II in the gate: the largest for each number of limbs in which kernels join residues.
RESIDUE_COUNTS = (4, 9, 15, 20)


def cases(targets: Sequence[str] = (), methods: Sequence[str] = ()) -> Iterator[GateRun]:
    """Yield the cases of every method, target and configuration, or of the named targets and methods."""
    for name in targets or [t.name for t in TARGETS.values() if t.gated]:
        target = get_target(name)
        for method in methods or (*KERNELS, RESIDUES):
            words = "s8" if method == RESIDUES else kernel_method(method).formats[0]
            if (target.name, words) not in MISSING:
                yield from _residue_cases(target) if method == RESIDUES else _word_cases(method, target)


def _residue_cases(target: KernelTarget) -> Iterator[GateRun]:
    tile, described = residue_tile(target), target.unit in DESCRIBED
    for count in RESIDUE_COUNTS:
        yield ResidueCase(get_method(RESIDUES, moduli=count), target, tile, described)


def _word_cases(method: str, target: KernelTarget) -> Iterator[GateRun]:
    """Yield a method's cases: products that split, then plans with words in memory, as matmul runs them."""
    from mpgemm.kernels.planned_gate import PlannedCase  # a plan needs torch

    row = kernel_method(method)
    form = kernel_form(row)
    for tile in configurations(form, target):
        yield GateCase(row, target, tile)
    described = target.unit in DESCRIBED
    called, plain = recipe(method, parts=1), recipe(method, scale="none", parts=1)
    tiles = word_configurations(form, target) if described else configurations(form, target, (True, True))
    for tile in tiles:
        yield PlannedCase(called, target, tile)
        if described:  # boxes of words along k and along lines
            yield PlannedCase(called, target, tile, "tt")
            if called != plain:
                yield PlannedCase(plain, target, tile)
    yield PlannedCase(replace(called, parts=2), target, tiles[0])


@dataclass
class CaseRecord:
    """`CaseRecord` is the result of a case of the gate.

    Attributes
    ----------
    case, target : str
        Names of the case and its target.
    kernels : str
        Digest of the kernels (:func:`kernels_digest`).
    comparisons, elements, finite, differ : int
        Numbers of comparisons and of elements, finite elements and differing elements, over all data and shapes.
    stopped : str
        Reason why the machine stopped a kernel; empty if it did not.
    """

    case: str
    target: str
    kernels: str
    comparisons: int = 0
    elements: int = 0
    finite: int = 0
    differ: int = 0
    stopped: str = ""

    @property
    def passed(self) -> bool:
        """Whether every element has the simulation's bits."""
        return not self.differ and not self.stopped


def kernels_digest() -> str:
    """Return a digest of the source files of the kernels, and of Triton's version."""
    import triton

    found = hashlib.sha256(triton.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.stem.endswith("gate"):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def record_of(case: GateRun, kernels: str) -> CaseRecord:
    """Run a case, print a line for each comparison, and return the record."""
    found = CaseRecord(f"{case.name} on {case.target.name}, {case.configuration}", case.target.name, kernels)
    try:
        for result in case.check():
            _say(str(result))
            found.comparisons += 1
            found.elements += result.elements
            found.finite += result.finite
            found.differ += result.differ
    except (KernelFault, Refused) as error:
        found.stopped = str(error)
        _say(f"{found.case}: stopped: {error}")
    return found


def passed_before(path: Path, kernels: str) -> dict[str, CaseRecord]:
    """Return the cases of a file that passed, by name. Raises ValueError if the file has results of other kernels."""
    if not path.exists():
        return {}
    records = [CaseRecord(**json.loads(line)) for line in path.read_text().splitlines()]
    if others := {r.kernels for r in records} - {kernels}:
        raise ValueError(
            f"{path} has results of kernels {', '.join(sorted(others))}, expected {kernels}: give another --out"
        )
    return {r.case: r for r in records if r.passed}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _totals(records: Sequence[CaseRecord]) -> Iterator[str]:
    for target in dict.fromkeys(r.target for r in records):
        rows = [r for r in records if r.target == target]
        comparisons, elements, differ = (
            sum(getattr(r, x) for r in rows) for x in ("comparisons", "elements", "differ")
        )
        stopped = sum(bool(r.stopped) for r in rows)
        yield f"{target}: {len(rows)} cases, {comparisons} comparisons, {differ} of {elements} differ, {stopped} stopped"


def main(arguments: Sequence[str]) -> int:
    """Run the gate and return 1 if a bit differs or the machine stops a kernel, else 0; a failing case does not end the run."""
    parser = argparse.ArgumentParser("python -m mpgemm.kernels.whole_gate", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="targets of mpgemm kernel --target (default: all)")
    parser.add_argument(
        "--out", type=Path, help="file with a line of JSON for each case; cases that passed in it are not run again"
    )
    asked = parser.parse_args(arguments)
    kernels = kernels_digest()
    before, records = passed_before(asked.out, kernels) if asked.out else {}, []
    for case in cases(asked.targets):
        name = f"{case.name} on {case.target.name}, {case.configuration}"
        if name not in before:
            before[name] = record_of(case, kernels)
            if asked.out:
                with asked.out.open("a") as file:
                    file.write(json.dumps(asdict(before[name])) + "\n")
        records.append(before[name])
    for line in _totals(records):
        _say(line)
    return int(not all(r.passed for r in records))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
