"""What is wrong between the groups of a grouped product: experts, boundaries, and rows of A that are read elsewhere."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mpgemm.testing.diagnosis.failure import Failure, Finding
from mpgemm.testing.diagnosis.places import TILES
from mpgemm.testing.grouped_call import GroupedCall

#: Rows of a group on which suspicions are tried: so many wrong ones, and right ones.
ROWS = 8


def explain(f: Failure, call: GroupedCall, expert: int) -> tuple[str, ...]:
    """What explains the wrong rows of an expert: the best statements, none where another expert or row has no part in it."""
    if not f.rows.size or not f.wrong.any():
        return ()
    f = _of_some_rows(f)
    good = [finding for finding in _findings(f, call, expert) if finding.good]
    best = min((finding.fit for finding in good), default=math.inf)
    return tuple(dict.fromkeys(finding.text for finding in good if finding.fit <= 1.1 * best))


def _of_some_rows(f: Failure) -> Failure:
    """With the elements of a few rows only, wrong and right ones: every suspicion is a product of its own."""
    wrong = f.wrong[f.rows, f.columns]
    kept = np.zeros(f.rows.shape, bool)
    for taken in (wrong, ~wrong):
        lines = np.unique(f.rows[taken])
        kept |= taken & np.isin(f.rows, lines[np.linspace(0, lines.size - 1, min(lines.size, ROWS)).astype(int)])
    return replace(f, rows=f.rows[kept], columns=f.columns[kept])


def _findings(f: Failure, call: GroupedCall, expert: int) -> Iterator[Finding]:
    group = call.rows(expert)
    lines, at = np.unique(f.rows, return_inverse=True)
    wrong, rows = f.wrong[f.rows, f.columns], group[lines]
    tried = math.log(4 * len(call.b) + 8)
    where, are, have, read_a = _rows_in_words(group[np.flatnonzero(f.wrong.any(1))], group)

    def finding(text: str, chosen: int = expert, **swapped) -> Finding:
        values = call.case(rows, chosen, **swapped).result[at, f.columns]
        return f.finding(np.where(wrong, values, f.true), text, 2.0, tried)

    for other in range(len(call.b)):
        if other == expert:
            continue
        text = f"{where} {are} multiplied with expert {other} in the place of expert {expert}"
        text += _boundary(f, call, expert, other)
        yield finding(text, other)
        if call.scales_differ:
            yield finding(
                f"{where} {have} the scales of expert {other} in the place of those of {expert}", scales_of=other
            )
            yield finding(f"{where} {have} B of expert {other} with the scales of {expert}", other, scales_of=expert)
        if call.biases_differ:
            yield finding(f"{where} {have} the bias of expert {other} in the place of that of {expert}", bias_of=other)
    start = int(group[0])
    for step, how in (
        (1, "one row ahead"),
        (-1, "one row behind"),
        (-start, "from row 0 on: the offset of the group is lost"),
    ):
        read = rows + step
        if step and (read >= 0).all() and (read < len(call.a)).all():
            yield finding(f"{where} {read_a} A {how}", a_rows=read)


def _rows_in_words(rows: np.ndarray, group: np.ndarray) -> tuple[str, str, str, str]:
    """Wrong rows of a group, numbered in the whole result, and their verbs."""
    if rows.size == 1:
        return f"row {rows[0]}", "is", "has", "reads"
    text = f"{rows.size} rows from {rows[0]} to {rows[-1]}"
    if rows.size == group.size:
        text = f"all rows of the group, {group[0]} to {group[-1]},"
    elif rows[-1] - rows[0] + 1 == rows.size:
        text = f"rows {rows[0]} to {rows[-1]}"
    return text, "are", "have", "read"


def _boundary(f: Failure, call: GroupedCall, expert: int, other: int) -> str:
    """What wrong rows at the end of a group next to the other one say of where the kernel takes the boundary to be."""
    group = call.rows(expert)
    wrong = group[np.flatnonzero(f.wrong.any(1))]
    if wrong.size == group.size or wrong[-1] - wrong[0] + 1 != wrong.size:
        return ""
    filled = [e for e in range(len(call.b)) if call.rows(e).size]
    place = filled.index(expert)
    if wrong[0] == group[0] and place and filled[place - 1] == other:
        cut = int(wrong[-1]) + 1
    elif wrong[-1] == group[-1] and place + 1 < len(filled) and filled[place + 1] == other:
        cut = int(wrong[0])
    else:
        return ""
    tile = max((t for t in TILES if cut % t == 0), default=0)
    return f": the boundary is taken to be at row {cut}{f', a multiple of {tile}' if tile else ''}"
