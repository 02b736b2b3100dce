"""Units on a GPU without one: their launches run on the machine of PTX, stored or compiled here, with tensors on the CPU."""

import json
from pathlib import Path

import numpy as np
import torch

import tensorcore_models as tcm
from tensorcore_models.gpu.compiling import unit_kernel
from tensorcore_models.gpu.launchers import CompiledText, TextMachine
from tensorcore_models.gpu.products import unit_on
from tensorcore_models.gpu.targets import get_target
from tensorcore_models.kernels import lowered
from tensorcore_models.probing.random_operands import DrawnOperands

FOLDER = Path(__file__).parents[1] / "vectors" / "ptx" / "units"
#: Outputs of a thread: tiles of A and of B have 8 rows each, so that one text packs both.
EACH, WARPS = (2, 1), (1, 1)


def stored(name: str, change=lambda function, text: text):
    """(unit's name, machine of its stored texts); `change` makes mutants of them."""
    texts, facts = [], {}
    for path in sorted(FOLDER.glob(f"{name}-*.ptx")):
        text = path.read_text()
        facts = json.loads(text.partition("\n")[0].removeprefix("// "))
        constants = {"SHAPE": tuple(facts["shape"])} if "shape" in facts else {}
        name = facts["function"]
        texts.append(CompiledText(name, change(name, text), facts["parameters"], constants))
    return facts["unit"], TextMachine(get_target(facts["target"]), unit_kernel, texts, unpublished="nearest")


def compiling(target: str) -> TextMachine:
    """A machine that compiles what it runs."""
    return TextMachine(get_target(target), unit_kernel, unpublished="nearest")


def tensor_of(x: np.ndarray | None):
    """Encodings as a batch of one, as signed integers."""
    if x is None:
        return None
    return torch.from_numpy(np.ascontiguousarray(x).view(f"i{x.itemsize}"))[None]


def run(engine, machine: TextMachine, p, every=None, **how):
    """(UnitRun, encodings) of drawn operands."""
    how = {"each": EACH, "warps": WARPS, **how}
    low = lowered(engine)
    unit = unit_on(low, machine.target, machine, engine.label, **how)
    scales = tensor_of(p.scale_a), tensor_of(p.scale_b)
    done = unit.run(tensor_of(p.a), tensor_of(p.b), tensor_of(p.c), every, scales)
    return done, done.bits[0].numpy().view(low.d_format.container)


def normal(low, seed: int, shape=(13, 11, 72), spread=3) -> DrawnOperands:
    """Operands of one scale, c beside them, block scales around 1, within 2^-spread and 2^spread."""
    (m, n, k), rng = shape, np.random.default_rng(seed)
    a, b = (
        tcm.encode(rng.standard_normal(s), f.name, "rne") for f, s in zip(low.floating, ((m, k), (k, n)), strict=False)
    )
    scales = (None, None)
    if low.scale_format is not None:
        blocks = -(-k // low.block_size)
        scales = tuple(rng.integers(127 - spread, 128 + spread, s).astype(np.uint8) for s in ((m, blocks), (blocks, n)))
    return DrawnOperands(a, b, rng.standard_normal((m, n)).astype(np.float32).view(np.uint32), *scales)
