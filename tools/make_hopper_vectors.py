"""This tool makes the files of the project's own run on a Hopper GPU: tests/vectors/hopper and the table of edge rules.

Run it from the repository root: python tools/make_hopper_vectors.py FOLDER EXPERIMENTS

EXPERIMENTS is the file of decisive experiments that the run was given. FOLDER has ``decisive.json``, ``edge_rules.json`` and a
folder for each group of instructions with ``vectors.npz``, ``index.json`` and ``comparison.json``: the folder ``units`` that
``mpgemm campaign units --experiments EXPERIMENTS`` writes.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "tests" / "vectors" / "hopper"
TABLE = ROOT / "tensorcore_models" / "catalogue" / "measured" / "hopper.json"
#: Number of matrices of one entry that are kept.
MATRICES = 1
#: Fields of each instruction decided by the experiments that the table keeps.
KEPT = ("rules", "decided")


def groups(folder: Path) -> list[Path]:
    """Return the folders of recordings."""
    return sorted(path.parent for path in folder.glob("*/index.json"))


def compact(folder: Path) -> None:
    """Keep the first matrices of every instruction and kind."""
    from tensorcore_models.hardware.campaign.recording import INDEX, Recorder, recorded
    from tensorcore_models.probing.random_operands import DrawnOperands

    facts = json.loads((groups(folder)[0] / INDEX).read_text())
    del facts["vectors"]
    recorder = Recorder(VECTORS, facts)
    for group in groups(folder):
        for row, kind, inputs, d in recorded(group):
            first = [None if x is None else x[:MATRICES] for x in inputs]
            recorder.add(row, kind, DrawnOperands(*first), d[:MATRICES])
    recorder.save()
    size = (VECTORS / "vectors.npz").stat().st_size
    print(f"{VECTORS.name}: {len(recorder)} entries, {size} bytes")


def experiments(folder: Path, file: Path) -> None:
    """Return the decisive experiments with their results, without zeros at the end of a row or column."""
    from tensorcore_models.files import write_text

    results = json.loads((folder / "decisive.json").read_text())["results"]
    given = {(x["id"], x["instruction"]): x for x in json.loads(file.read_text())["experiments"]}
    kept = []
    for found in results:
        x = given[found["id"], found["instruction"]]
        sides = {}
        for name in ("a", "b"):
            codes = x[f"{name}_bits"]
            last = max((i for i, code in enumerate(codes) if int(code, 16)), default=-1)
            sides[name] = codes[: last + 1]
        kept.append({**found, **sides, "c": x["c_bits"]})
    lines = ",\n".join(json.dumps(x) for x in kept)
    write_text(VECTORS / "experiments.json", f"[\n{lines}\n]\n")
    print(f"experiments.json: {len(kept)} experiments")


def nan_of(recorded_rows) -> str:
    """Return the rule of NaN that gives most results of all instructions with this result format."""
    missed: dict[str, int] = {}
    for row, results in recorded_rows:
        for rule in row.accumulator.edge_rules["nan"]:
            wrong = sum(int((row.with_rules(nan=rule).mma_bits(*x) != d).sum()) for x, d in results)
            missed[rule] = missed.get(rule, 0) + wrong
    print(f"results in FP64 that each rule of NaN misses: {missed}")
    return min(missed, key=lambda rule: missed[rule])


def table(folder: Path) -> None:
    """Write the table: edge rules of the experiments, NaN of FP64 by the recorded results, and the compared results of
    each row.
    """
    from tensorcore_models.files import write_text
    from tensorcore_models.hardware.campaign.recording import recorded

    found = json.loads((folder / "edge_rules.json").read_text())
    rows = {name: {key: facts[key] for key in KEPT} for name, facts in found["instructions"].items()}
    compared: dict[str, int] = {}
    doubles = []
    for group in groups(folder):
        comparison = json.loads((group / "comparison.json").read_text())
        entries: dict = {}
        for row, _, inputs, d in recorded(group):
            entries.setdefault(row.name, (row, []))[1].append((inputs, d))
        for name, (row, results) in entries.items():
            if row.d_format == "fp64":
                doubles.append((row, results))
            mismatches = sum(comparison[name]["mismatches"].values())
            # rows whose model was changed after the run were compared on the recorded results only
            compared[name] = sum(d.size for _, d in results) if mismatches else sum(comparison[name]["dots"].values())
    nan = nan_of(doubles)
    rows |= {row.name: {"rules": {"nan": nan}, "decided": ["nan"]} for row, _ in doubles}
    said = {key: found[key] for key in ("arch", "evidence", "rules")}
    write_text(TABLE, json.dumps({**said, "instructions": rows, "compared": compared}, indent=1) + "\n")
    print(f"{TABLE.name}: {len(rows)} instructions with rules of their own, {len(compared)} compared")


if __name__ == "__main__":
    recordings = Path(sys.argv[1])
    compact(recordings)
    experiments(recordings, Path(sys.argv[2]))
    table(recordings)
