"""This tool identifies every instruction of the catalogue, or random units, as black boxes, and writes a line of JSON each.

Instructions with the same arithmetic and formats are one box. A stopped run continues where it stopped:

    python tools/identify_catalogue.py catalogue.jsonl --vectors 20000
    python tools/identify_catalogue.py gaudi.jsonl --arch gaudi2 gaudi3      # boxes of these architectures
    python tools/identify_catalogue.py random.jsonl --random 500 --vectors 20000     # units of tests/support/boxes.py
    python tools/identify_catalogue.py catalogue.jsonl --compare 1000000     # what came out with the true engines
    python tools/identify_catalogue.py catalogue.jsonl --table      # what the files say, as Markdown
"""

import argparse
import itertools
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import tensorcore_models as tcm
from tensorcore_models import probing
from tensorcore_models.accumulators import Accumulator
from tensorcore_models.probing.identify.box import as_box, model_answer
from tensorcore_models.probing.identify.fields import engine_of
from tensorcore_models.probing.identify.inputs import pool
from tensorcore_models.probing.identify.magnitudes import scaled_pool
from tensorcore_models.probing.identify.mutations import mutated

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from boxes import random_unit

#: Number of changes to fresh inputs before new ones are made.
CHANGED = 4


def instructions() -> dict[str, list[str]]:
    """Return the instructions by their arithmetic, under the first one's name."""
    groups: dict[tuple, list[str]] = defaultdict(list)
    for row in tcm.list_instructions():
        if row.published:
            formats = (row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format, row.block_size, row.k)
            groups[(row.accumulator, *formats)].append(str(row))
    return {names[0]: names for names in groups.values()}


def units(random: int, archs: list[str] | None) -> Iterator[tuple[str, tcm.MatrixEngine, int]]:
    """Yield (name, engine, instructions with the same arithmetic) of each box."""
    if random:
        yield from ((f"random unit {seed}", random_unit(seed), 1) for seed in range(random))
        return
    for name, names in instructions().items():
        if archs is None or name.partition(":")[0] in archs:
            yield name, tcm.get_instruction(name), len(names)


def differences(row: tcm.MatrixEngine, engine: tcm.MatrixEngine, vectors: int) -> int:
    """Return the number of results on fresh inputs that the identified engine does not give."""
    rng = np.random.default_rng(2027)
    wrong = done = 0
    true, found, interface = model_answer(row), model_answer(engine), as_box(row).interface
    for made in itertools.cycle((pool, scaled_pool)):
        batch = made(interface, min(20_000, vectors), rng)
        for _ in range(1 if interface.integer else 1 + CHANGED):
            wrong += int(np.count_nonzero(true(batch) != found(batch)))
            done += batch.size
            if done >= vectors:
                return wrong
            batch = batch if interface.integer else mutated(interface, batch, rng)


def identified(name: str, row: tcm.MatrixEngine, count: int, vectors: int, check: int) -> dict:
    """Return the line of one box: the found specification, its cost, and whether it is right."""
    started, cpu = time.monotonic(), time.process_time()
    result = probing.identify(row, vectors=vectors)
    seconds, cpu = time.monotonic() - started, time.process_time() - cpu
    line = result.to_dict() | {"name": name, "instructions": count, "seconds": seconds, "cpu_seconds": cpu}
    line["evidence"] = len(result.evidence)
    line["wrong"] = None if result.engine is None else differences(row, result.engine, check)
    line["algorithm"] = type(row.accumulator).__name__
    return line


def specification(plain: dict) -> Accumulator:
    """Return a specification from its JSON form."""
    rest = {
        name: tuple(value) if isinstance(value, list) else value for name, value in plain.items() if name != "class"
    }
    if "dot" in rest:
        inner = {name: tuple(v) if isinstance(v, list) else v for name, v in rest["dot"].items()}
        marks = {"c_position": tcm.ParametricDotAdd, "pair_order": tcm.SequentialFMA}
        kind = next((kind for field, kind in marks.items() if field in inner), tcm.FusedDotAdd)
        rest["dot"] = kind(**inner)
    return getattr(tcm.accumulators, plain["class"])(**rest)


def compare(lines: list[dict], boxes: list[tuple[str, tcm.MatrixEngine, int]], out: Path, vectors: int) -> None:
    """Compare the found specifications with the true engines on fresh inputs, a line of JSON each."""
    specs = {line["name"]: specification(line["specification"]) for line in lines if line["specification"] is not None}
    for name, unit, _ in boxes:
        if name not in specs:
            continue
        row = {"name": name, "vectors": vectors}
        row["wrong"] = differences(unit, engine_of(specs[name], as_box(unit).interface), vectors)
        append(out, row)
        print(f"{name}: {row['wrong']} of {vectors} differ", flush=True)


def read(path: Path) -> list[dict]:
    """Return the lines of a file; none if there is no file yet."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append(path: Path, line: dict) -> None:
    """Append one line."""
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def table(lines: list[dict]) -> str:
    """Return a Markdown table with one row for each algorithm and operand format."""
    groups = defaultdict(list)
    for line in lines:
        groups[line["algorithm"]].append(line)
    rows = [
        "| algorithm | boxes | instructions | right | wrong | outside | open questions | queries | CPU seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, members in sorted(groups.items()):
        right = sum(1 for m in members if m["wrong"] == 0)
        wrong = sum(1 for m in members if m["wrong"])
        open_ = [len(m["open_questions"]) for m in members]
        queries, cpu = ([m[key] for m in members] for key in ("queries", "cpu_seconds"))
        ranges = f"{min(open_)} to {max(open_)} | {min(queries)} to {max(queries)} | {min(cpu):.0f} to {max(cpu):.0f}"
        count = sum(m["instructions"] for m in members)
        outside = len(members) - right - wrong
        rows.append(f"| {name} | {len(members)} | {count} | {right} | {wrong} | {outside} | {ranges} |")
    return "\n".join(rows)


def main() -> None:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--vectors", type=int, default=100_000, help="number of random vectors of each identification")
    parser.add_argument(
        "--check", type=int, default=100_000, help="number of fresh vectors on which the result is compared"
    )
    parser.add_argument(
        "--random", type=int, default=0, metavar="N", help="take the first N random units instead of the catalogue"
    )
    parser.add_argument(
        "--arch", nargs="+", metavar="ARCH", help="only boxes whose first instruction is of these architectures"
    )
    parser.add_argument("--part", default="0/1", help="I/N takes every Nth box from the Ith")
    parser.add_argument("--most", type=int, metavar="N", help="stop after N boxes")
    parser.add_argument("--compare", type=int, metavar="N", help="compare the found specifications on N fresh vectors")
    parser.add_argument("--table", action="store_true", help="print the table of the file")
    args = parser.parse_args()
    tcm.set_num_threads(1)
    lines, compared = read(args.out), args.out.with_suffix(".compared.jsonl")
    if args.table:
        print(table(lines))
        by_vectors = defaultdict(list)
        for line in read(compared):
            by_vectors[line["vectors"]].append(line["wrong"])
        for vectors, wrong in by_vectors.items():
            print(f"\n{len(wrong)} compared on {vectors} fresh vectors each, {sum(map(bool, wrong))} not equal")
        return
    part, parts = map(int, args.part.split("/"))
    done = {line["name"] for line in (read(compared) if args.compare else lines)}
    boxes = [box for box in list(units(args.random, args.arch))[part::parts] if box[0] not in done][: args.most]
    if args.compare:
        compare(lines, boxes, compared, args.compare)
        return
    for name, unit, count in boxes:
        line = identified(name, unit, count, args.vectors, args.check)
        append(args.out, line)
        print(
            f"{name}: {line['verdict'][:90]}, wrong {line['wrong']}, {line['queries']} queries, "
            f"{line['cpu_seconds']:.0f} s of CPU time",
            flush=True,
        )


if __name__ == "__main__":
    main()
