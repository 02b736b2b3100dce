"""This module runs decisive experiments: single dot products on which published models disagree.

An experiment names an instruction, encodings of a row of A, a column of B and an element of C, and the result that each
hypothesis predicts. From the hardware's results follow the hypotheses that survive for each question, and the edge rules
(:mod:`tensorcore_models.accumulators`) with which the model of each instruction reproduces all results.
"""

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...accumulators import Accumulator
from ...catalogue import get_instruction
from ...catalogue.measured import is_shared
from ...engines.instruction import Instruction
from ...formats import Format
from ...probing.interface import is_nan
from ...reference import dot_bits
from .comparison import Multiplies

#: Questions by the first letter of an experiment's name.
QUESTIONS = {
    "Z": "exponent of a zero operand or zero product",
    "C": "does c = 0 take part in the alignment; exponent of a subnormal fp32 c",
    "H": "exponent of a subnormal fp16 c; floor of the alignment exponent for fp16 results",
    "R": "is an fp16 result rounded directly",
    "N": "sign of a negative sum that rounds to zero",
    "O": "overflow",
    "U": "are products and subnormal operands normalised before the alignment",
    "E": "width of the fp8 unit of wgmma, c included",
    "T": "the low 13 bits of tf32 operands",
    "S": "NaN and infinity",
    "D": "fp64: order of the chain, zeros, NaN",
    "Q": "fp8 mma.sync: order of the interleaved groups, place and rounding of c",
}

#: Alignment floors that have been proposed, by result format (MATLAB-tensor-core, mmasim 2.1.1, Hawkeye).
FLOORS = {"fp32": (None, -133, -132, -131), "fp16": (None, -21, -20, -19)}
#: Values to try for edge rules with free values.
FREE_RULES = {"group_order": ((0, 1), (1, 0))}
#: Edge rules that experiments of this kind cannot decide.
LEFT_OUT = {"terms", "scaled_zero"}


@dataclass(frozen=True)
class Experiment:
    """`Experiment` is one decisive dot product with k encodings of a and b; the first letter of `id` names the question.

    A prediction is an encoding in hexadecimal, "nan" or "nonzero".
    """

    id: str
    instruction: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    predictions: Mapping[str, str]
    note: str = ""


def load_experiments(path: Path) -> list[Experiment]:
    """Read experiments from a JSON file; raises ValueError if the file holds something else."""
    try:
        rows = json.loads(Path(path).read_text())["experiments"]
        return [
            Experiment(
                row["id"], row["instruction"], tuple(int(x, 16) for x in row["a_bits"]),
                tuple(int(x, 16) for x in row["b_bits"]), int(row["c_bits"], 16), dict(row["predictions"]), row.get("note", ""),
            )
            for row in rows
        ]  # fmt: skip
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f'{path} is not a file of experiments, expected JSON with a list "experiments", each with id, instruction, '
            "predictions, and hexadecimal numbers in a_bits, b_bits and c_bits"
        ) from error


def agrees(bits: int, prediction: str, fmt: Format) -> bool:
    """Return whether a result agrees with a prediction."""
    if prediction == "nan":
        return bool(is_nan(np.array(bits, fmt.container), fmt))
    if prediction == "nonzero":
        return bits & fmt.magnitude_mask != 0
    return bits == int(prediction, 16)


def run(experiments: Iterable[Experiment], arch: str, unit_of) -> dict[tuple[str, str], int]:
    """Return the results by (id, instruction); ``unit_of(row)`` returns the engine that runs an instruction."""
    results: dict[tuple[str, str], int] = {}
    grouped = itertools.groupby(sorted(experiments, key=lambda e: e.instruction), key=lambda e: e.instruction)
    for name, group in grouped:
        row, cases = get_instruction(arch, name), list(group)
        unit: Multiplies = unit_of(row)
        formats = row.formats
        a = np.zeros((len(cases), row.m, row.k), formats[0].container)
        b = np.zeros((len(cases), row.k, row.n), formats[1].container)
        c = np.zeros((len(cases), row.m, row.n), formats[2].container)
        for i, case in enumerate(cases):
            a[i, 0], b[i, :, 0], c[i, 0, 0] = case.a, case.b, case.c
        d = unit.mma_bits(a, b, c)
        results |= {(case.id, name): int(d[i, 0, 0]) for i, case in enumerate(cases)}
    return results


def survivors(
    experiments: list[Experiment], results: Mapping[tuple[str, str], int], arch: str
) -> dict[str, dict[str, Any]]:
    """Return for each question the number of right predictions of each hypothesis, and the hypotheses that survive."""
    answers = {}
    for letter, question in QUESTIONS.items():
        cases = [e for e in experiments if e.id.startswith(letter) and (e.id, e.instruction) in results]
        if not cases:
            continue
        right: dict[str, list[int]] = {}
        for case in cases:
            fmt = get_instruction(arch, case.instruction).formats[3]
            got = results[case.id, case.instruction]
            for hypothesis, prediction in case.predictions.items():
                score = right.setdefault(hypothesis, [0, 0])
                score[0] += agrees(got, prediction, fmt)
                score[1] += 1
        answers[letter] = {
            "question": question,
            "survive": [h for h, (hits, total) in right.items() if hits == total],
            "score": {h: f"{hits} of {total}" for h, (hits, total) in right.items()},
        }
    return answers


def _variants(row: Instruction) -> list[tuple[dict[str, Any], Accumulator]]:
    """Return every setting of the edge rules of an instruction, starting with that of the catalogue."""
    spec = row.accumulator
    domains = {}
    for rule in spec.edge_rules:
        if rule in LEFT_OUT or (rule == "tf32_nan" and row.a_format != "tf32"):
            continue
        own = getattr(spec, rule)
        domains[rule] = [own, *(value for value in _domain(row, rule) if value != own)]
    settings = [dict(zip(domains, values, strict=True)) for values in itertools.product(*domains.values())]
    return [(rules, spec.with_rules(**rules)) for rules in settings]


def consistent_rules(
    row: Instruction,
    cases: list[Experiment],
    results: Mapping[tuple[str, str], int],
    prefer: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the settings of an instruction's edge rules with which its model gives the hardware's results.

    The result has these keys. ``rules``: the chosen value of each rule; if several values fit, that of `prefer` (decided by
    other instructions), or else that of the catalogue. ``decided``: rules for which only one value fits. ``possible``: all
    values of each rule that fit. ``changed``: rules whose value differs from the catalogue. ``unexplained``: ids of
    experiments that the best setting does not reproduce.
    """
    best: list[dict[str, Any]] = []
    missed: list[str] = []
    fewest = (len(cases) + 1, 0)
    for rules, spec in _variants(row):
        wrong, payloads = [], 0
        for case in cases:
            got = results[case.id, case.instruction]
            model = dot_bits(spec, list(case.a), list(case.b), case.c, row.formats)
            if got == model:
                continue
            if row.d_format == "fp64" and is_nan(np.array([got, model], np.uint64), row.formats[3]).all():
                payloads += 1  # payloads are not published: they count only between otherwise equal settings
                continue
            wrong.append(case.id)
            if len(wrong) > fewest[0]:
                break
        score = (len(wrong), payloads)
        if score < fewest:
            best, fewest, missed = [rules], score, wrong
        elif score == fewest:
            best.append(rules)
    own = {rule: getattr(row.accumulator, rule) for rule in best[0]}
    wanted = {**own, **{rule: value for rule, value in (prefer or {}).items() if rule in own}}
    chosen = min(best, key=lambda rules: sum(rules[r] != wanted[r] for r in own))
    possible = {rule: list(dict.fromkeys(rules[rule] for rules in best)) for rule in own}
    return {
        "rules": chosen,
        "decided": [rule for rule, values in possible.items() if len(values) == 1 and len(_domain(row, rule)) > 1],
        "possible": possible,
        "changed": {rule: value for rule, value in chosen.items() if value != own[rule]},
        "unexplained": missed,
    }


def _domain(row: Instruction, rule: str) -> tuple:
    """Return the values that a rule may have; only the instruction's own value if no others are listed."""
    if rule == "exponent_floor":
        return FLOORS.get(row.d_format, (None,))
    allowed: tuple | None = row.accumulator.edge_rules[rule] or FREE_RULES.get(rule)
    return (getattr(row.accumulator, rule),) if allowed is None else allowed


def edge_rules(
    experiments: list[Experiment], results: Mapping[tuple[str, str], int], arch: str, evidence: str
) -> dict[str, Any]:
    """Return the table of edge rules that follow from the hardware's results, with `arch` and `evidence`.

    ``instructions`` holds :func:`consistent_rules` of each instruction. ``rules`` holds the values on which all instructions
    that decide a rule agree; they are used for the other instructions of the architecture, too. ``divided`` holds rules on
    which instructions differ.
    """
    cases = {
        name: [e for e in experiments if e.instruction == name and (e.id, name) in results]
        for name in dict.fromkeys(e.instruction for e in experiments)
    }
    rows = {name: get_instruction(arch, name) for name, group in cases.items() if group}
    first = {name: consistent_rules(row, cases[name], results) for name, row in rows.items()}
    votes: dict[str, list[Any]] = {}
    for name, found in first.items():
        for rule in found["decided"]:
            value = found["rules"][rule]
            if is_shared(rule, rows[name]) and value not in votes.setdefault(rule, []):
                votes[rule].append(value)
    agreed = {rule: values[0] for rule, values in votes.items() if len(values) == 1}
    return {
        "arch": arch,
        "evidence": evidence,
        "rules": agreed,
        "divided": {rule: values for rule, values in votes.items() if len(values) > 1},
        "instructions": {
            name: consistent_rules(row, cases[name], results, {r: v for r, v in agreed.items() if is_shared(r, row)})
            for name, row in rows.items()
        },
    }
