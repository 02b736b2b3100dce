"""This command compares this machine's GPU, or with ``--cpu`` its CPU, with the models, and writes the results to a folder.

It is run as ``python -m tensorcore_models.hardware.campaign --out DIR`` and has three stages:

1. Decisive experiments give the hardware's answer to each open question, and the edge rules that follow.
2. Every instruction of the architecture is compared with its model under these rules, by kind of operands; mismatches are
   shrunk.
3. A compact set of vectors is recorded, for replay on any machine.

Results are written during the run (each file atomically), so that an interrupted run keeps its findings, and a run that is
started again with the same folder continues. ``mpgemm campaign`` also covers emulation, kernels, functions, libraries, times.
"""

import argparse
import dataclasses
import datetime
import functools
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...catalogue import get_instruction, list_instructions
from ...catalogue.measured import with_table
from ...cpu_units import CpuEngine, available, status, this_machine
from ...cpu_units.units import Machine
from ...engines.engine import Engine
from ...engines.instruction import Instruction
from ...probing.random_operands import KINDS, operands
from ..cuda.device import Device, default_device
from ..cuda.engines import CudaEngine
from .comparison import compare
from .decisive import edge_rules, load_experiments, run, survivors
from .recording import INDEX, Recorder, recorded, write_json

#: Dot products of one kind in the first round; each later round has ROUND_GROWTH times more, until the target is reached.
FIRST_ROUND = 4096
ROUND_GROWTH = 16
#: Largest number of elements of a batch, which keeps operands and results within a few hundred megabytes.
BATCH_ELEMENTS = 1 << 24
#: Largest number of elements that are recorded of each instruction and kind.
RECORDED_ELEMENTS = 3072
#: File of the comparison, which a continued campaign reads again.
COMPARISON = "comparison.json"


@dataclasses.dataclass
class Tally:
    """`Tally` holds the findings from the comparison of one instruction."""

    dots: dict[str, int] = dataclasses.field(default_factory=dict)
    mismatches: dict[str, int] = dataclasses.field(default_factory=dict)
    examples: list[dict] = dataclasses.field(default_factory=list)
    error: str = ""


class Campaign:
    """`Campaign` is a run over one device with a `budget` in seconds; results go to the folder `out`.

    Without a file of `experiments` the first stage is left out. `target` dot products are compared for each of the `rows`, by
    default all rows of the architecture. ``engine(row)`` returns the engine of an instruction, by default on the device.
    Results that the folder already holds are continued. Raises ValueError if they are of another device or damaged.
    """

    def __init__(
        self,
        device: Device | Machine,
        out: Path,
        budget: float = 480.0,
        experiments: Path | None = None,
        target: int = 10_000_000,
        rows: Sequence[Instruction] | None = None,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = print,
        engine: Callable[[Instruction], Engine] | None = None,
    ):
        self._engine: Callable[[Instruction], Engine]
        if engine is not None:
            self._engine = engine
        else:
            self._engine = CpuEngine if isinstance(device, Machine) else functools.partial(CudaEngine, on=device)
        self.device, self.out, self.experiments = device, Path(out), experiments
        self.target, self.seed, self.clock, self.say = target, seed, clock, say
        self.start, self.budget = clock(), budget
        self.rows = list(rows) if rows is not None else [r for r in list_instructions(device.arch) if r.published]
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        kind = "cpu" if isinstance(device, Machine) else "gpu"
        self.facts = {kind: device.name, "driver": device.driver, "date": date, "arch": device.arch}
        self.evidence = f"hardware: own run ({device.name}, {device.driver}, {date})"
        self.rules: dict[str, Any] | None = None
        self.tallies = {row.name: Tally() for row in self.rows}
        self.recorder = Recorder(self.out / "vectors", self.facts)
        self._go_on()

    def _go_on(self) -> None:
        """Read the tallies and vectors that the folder holds."""
        path = self.out / COMPARISON
        if path.exists():
            try:
                held = json.loads(path.read_text())
                tallies = {name: Tally(**found) for name, found in held["instructions"].items()}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"{path} is damaged, expected the comparison that a campaign wrote: remove the file, or give another folder"
                ) from error
            for fact in set(self.facts) - {"date"}:
                if held.get(fact) != self.facts[fact]:
                    raise ValueError(
                        f"{self.out} holds results of {fact} {held.get(fact)!r}, expected {self.facts[fact]!r} as in this "
                        "run: give another folder"
                    )
            # Instructions that failed are tried again.
            self.tallies |= {
                name: dataclasses.replace(t, error="") for name, t in tallies.items() if name in self.tallies
            }
        if (self.out / "vectors" / INDEX).exists():
            for row, kind, inputs, d in recorded(self.out / "vectors"):
                self.recorder.add(row, kind, inputs, d)

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return self.clock() - self.start

    def run(self) -> dict[str, Any]:
        """Run all stages, and return the summary that is also written."""
        stages = (
            ("decisive experiments", self.decide),
            ("comparison", self.compare_all),
        )
        failures = {}
        for name, stage in stages:
            if self.elapsed() >= self.budget:
                failures[name] = "no time left"
                continue
            try:
                stage()
            except Exception as error:  # an error in one stage must not lose the results of the other stages
                failures[name] = f"{type(error).__name__}: {error}"
                self.say(f"{name}: {failures[name]}")
        summary = {**self.facts, "evidence": self.evidence, "seconds": round(self.elapsed(), 1), "failures": failures}
        summary |= {
            "dot_products": sum(sum(t.dots.values()) for t in self.tallies.values()),
            "mismatches": {name: n for name, t in self.tallies.items() if (n := sum(t.mismatches.values()))},
            "not_run": [name for name, t in self.tallies.items() if not t.dots],
            "recorded": len(self.recorder),
        }
        write_json(self.out / "summary.json", summary)
        return summary

    # -- 1 ---------------------------------------------------------------------------------------------------------------
    def decide(self) -> None:
        """Run the decisive experiments, and write the edge rules that follow."""
        if self.experiments is None:
            self.say("decisive experiments are left out: no file is given (--experiments)")
            return
        experiments = load_experiments(self.experiments)
        results = run(experiments, self.device.arch, self._engine)
        answers = survivors(experiments, results, self.device.arch)
        self.rules = edge_rules(experiments, results, self.device.arch, self.evidence)
        rows = {e.instruction: get_instruction(self.device.arch, e.instruction) for e in experiments}
        digits = {name: 2 * row.formats[3].container.itemsize for name, row in rows.items()}
        listed = [{"id": i, "instruction": n, "result": f"{d:#0{digits[n] + 2}x}"} for (i, n), d in results.items()]
        write_json(self.out / "decisive.json", {**self.facts, "answers": answers, "results": listed})
        write_json(self.out / "edge_rules.json", self.rules)
        for letter, answer in answers.items():
            self.say(f"{letter}  {answer['question']}: {'; '.join(answer['survive']) or 'no hypothesis survives'}")
        for name, found in self.rules["instructions"].items():
            if found["changed"] or found["unexplained"]:
                self.say(
                    f"   {name}: changed rules {found['changed'] or 'none'}, unexplained {found['unexplained'] or 'none'}"
                )

    # -- 2 and 3 ---------------------------------------------------------------------------------------------------------
    def compare_all(self) -> None:
        """Run rounds over all instructions, each with more dot products, until the target or the budget is reached."""
        deadline = self.budget
        size, first = FIRST_ROUND, True
        open_rows = list(self.rows)
        try:
            while open_rows:
                for row in list(open_rows):
                    if self.elapsed() >= deadline:
                        return
                    if self._one_round(row, size, deadline, record=first):
                        open_rows.remove(row)
                write_json(self.out / COMPARISON, self._comparison())
                if first:
                    self.recorder.save()
                size, first = size * ROUND_GROWTH, False
        finally:
            write_json(self.out / COMPARISON, self._comparison())
            self.recorder.save()

    def _one_round(self, row: Instruction, size: int, deadline: float, *, record: bool) -> bool:
        """Compare about `size` dot products of every kind; return True if the instruction needs no further round."""
        tally, per_kind = self.tallies[row.name], -(-self.target // len(KINDS))
        model, hardware = with_table(row, self.rules), self._engine(row)
        done = True
        for number, kind in enumerate(KINDS):
            if self.elapsed() >= deadline:
                return False
            before = tally.dots.get(kind, 0)
            wanted = min(size, per_kind - before)
            if wanted <= 0:
                continue
            rng = np.random.default_rng([self.seed, number, before, *row.name.encode()])
            try:
                self._one_kind(row, hardware, model, kind, wanted, rng, deadline, record=record)
            except (
                Exception
            ) as error:  # whatever a driver or a kind of operands raises: the other rows are not lost for it
                tally.error = f"{type(error).__name__}: {error}"
                self.say(f"{row.name}: {tally.error}")
                return True
            done &= tally.dots.get(kind, 0) >= per_kind
        if any(tally.mismatches.values()) and record:
            counts = {kind: f"{n} of {tally.dots[kind]}" for kind, n in tally.mismatches.items() if n}
            self.say(f"{row.name}: mismatches {counts}")
        return done

    def _one_kind(self, row, hardware, model, kind, wanted, rng, deadline, *, record) -> None:
        tally = self.tallies[row.name]
        per_matrix = max(row.m * row.k, row.k * row.n, row.m * row.n)
        matrices = -(-wanted // (row.m * row.n))
        batch = max(1, min(matrices, BATCH_ELEMENTS // per_matrix))
        while matrices > 0 and self.elapsed() < deadline:
            inputs = operands(row, kind, min(batch, matrices), rng)
            examples = 3 if tally.mismatches.get(kind, 0) == 0 else 0
            d, wrong, found = compare(row, hardware, model, inputs, kind, examples)
            tally.dots[kind] = tally.dots.get(kind, 0) + d.size
            tally.mismatches[kind] = tally.mismatches.get(kind, 0) + wrong
            tally.examples += [dataclasses.asdict(example) for example in found]
            if record and not self.recorder.has(row, kind):
                kept = slice(0, max(1, RECORDED_ELEMENTS // (row.m * row.k + row.k * row.n + 2 * row.m * row.n)))
                self.recorder.add(row, kind, inputs.rows(kept), d[kept])
            matrices -= len(d)

    def _comparison(self) -> dict[str, Any]:
        rules = None if self.rules is None else self.rules["rules"]
        return {
            **self.facts,
            "rules": rules,
            "instructions": {n: dataclasses.asdict(t) for n, t in self.tallies.items()},
        }


def _gpu() -> tuple[Device, list[Instruction], dict[str, Any]]:
    device = default_device()
    return device, [row for row in list_instructions(device.arch) if row.published], {}


def _cpu(emulated: bool) -> tuple[Machine, list[Instruction], dict[str, Any]]:
    """Return the machine, the instructions that it runs, and further arguments of the campaign."""
    machine = this_machine(emulated)
    rows = available(emulated)
    if not rows:
        reasons = {str(row): status(row) for row in list_instructions(machine.arch)}
        raise RuntimeError("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
    return machine, rows, {"engine": functools.partial(CpuEngine, emulated=emulated)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 if instructions and models differ, 2 if the GPU is missing or the input is bad."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorcore_models.hardware.campaign", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--budget", type=float, default=480.0, help="time limit in seconds (default 480)")
    parser.add_argument("--experiments", type=Path, help="JSON file of decisive experiments")
    parser.add_argument("--target", type=int, default=10_000_000, help="dot products of each instruction (default 1e7)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the operands (default 0)")
    parser.add_argument("--cpu", action="store_true", help="compare the CPU's matrix instructions instead of the GPU's")
    parser.add_argument(
        "--emulated", action="store_true", help="with --cpu: compare their emulation in plain C, on any machine"
    )
    parser.add_argument("--only", default="", help="compare only instructions whose name contains this text")
    options = parser.parse_args(arguments)
    try:
        if options.emulated and not options.cpu:
            raise ValueError("--emulated is given without --cpu: give both")
        device, rows, more = _cpu(options.emulated) if options.cpu else _gpu()
        rows = [row for row in rows if options.only in row.name]
        if options.experiments is not None:
            load_experiments(options.experiments)
        campaign = Campaign(
            device, options.out, options.budget, options.experiments, options.target, rows, seed=options.seed,
            say=lambda text: print(text, flush=True), **more,
        )  # fmt: skip
    except (OSError, RuntimeError, ValueError) as error:
        print(f"campaign: {error}", file=sys.stderr)
        return 2
    summary = campaign.run()
    print(
        f"{summary['dot_products']} dot products, mismatches: {summary['mismatches'] or 'none'}; results in {options.out}"
    )
    return 1 if summary["mismatches"] else 0
