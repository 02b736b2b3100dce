"""The vectors of Gaudi's functional model, and the catalogue's instructions with the options of each of their groups."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import tensorcore_models as tcm

TYPES = {"fp16": "f16", "fp32": "f32", "fp32_ieee": "f32", "fp8_143": "e4m3", "fp8_152": "e5m2"}
BIASES = {"fp8_143": 7, "fp8_152": 15, "fp16": 15, "ufp16": 31}
MODES = {1: "finite", 2: "fn"}
#: What the arrays of results beside `d` were made with.
VARIANTS = {"": {}, "_rtl": {"normalised_products": False, "zero_sign": "ieee"}, "_ftzadd": {"flush_adds": True}}


class Rows(NamedTuple):
    """Rows of one group and variant: step inputs and results (c an array), or dots (c None)."""

    label: str
    instruction: tcm.Instruction
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    d: np.ndarray


def instruction_of(meta: dict, options: dict, variant: str) -> tcm.Instruction:
    """The catalogue's instruction under the options of a group."""
    types = meta["type_a"], meta["type_b"]
    spelled = ".".join(TYPES.get(t, t) for t in types)
    found = tcm.get_instruction(meta["chip"], f"mme.k{meta['width']}.f32.{spelled}.f32")
    rules = dict(VARIANTS[variant])
    for side, name in zip("ab", types, strict=True):
        if options and options["bias" + side] != BIASES[name]:
            rules["bias_" + side] = options["bias" + side]
        if options and options["im" + side]:
            rules["specials_" + side] = MODES[options["im" + side]]
    return found.with_rules(**rules) if rules else found


def read(path, every: int = 1) -> Iterator[Rows]:
    """All rows of a file, or every n-th of each group."""
    with np.load(path) as file:
        meta = json.loads(bytes(file["meta"]))
        for kind in ("step", "k64", "k61", "k256"):
            count = len(file[f"{kind}_a"])
            groups = file[f"{kind}_grp"] if f"{kind}_grp" in file.files else np.zeros(count, int)
            for variant in VARIANTS:
                if f"{kind}_d{variant}" not in file.files:
                    continue
                for number, options in enumerate(meta["groups"]):
                    rows = np.flatnonzero(groups == number)[::every]
                    c = file["step_c"][rows] if kind == "step" else None
                    arrays = (file[f"{kind}_a"][rows], file[f"{kind}_b"][rows], c, file[f"{kind}_d{variant}"][rows])
                    label = f"{path.stem} {kind}{variant} {options}"
                    yield Rows(label, instruction_of(meta, options, variant), *arrays)


def computed(rows: Rows) -> np.ndarray:
    """What the instruction returns for them: one step by itself, or a whole dot with the order of a GEMM."""
    if rows.c is not None:
        return rows.instruction.mma_bits(rows.a[:, None], rows.b[..., None], rows.c[:, None, None])[:, 0, 0]
    return np.array(
        [rows.instruction.gemm_bits(a[None], b[:, None])[0, 0] for a, b in zip(rows.a, rows.b, strict=True)]
    )
