"""Triton kernels with special functions, run on the machine, beside what an H100 returned for them."""

import json

import ml_dtypes
import numpy as np
import pytest

from tensorcore_models import compiled

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
SCALARS = {"softmax": (1000,), "rmsnorm": (1000, np.float32(1e-6)), "gelu": (16000,)}


@pytest.fixture(scope="module")
def recorded(shared):
    folder = shared / "hardware_vectors" / "h100" / "kernels"
    if not (folder / "triton.json").exists():
        pytest.skip("the recordings of kernels on an H100 are not at hand: set MPGEMM_SHARED to a folder that has them")
    rows = {row["name"]: row for row in json.loads((folder / "triton.json").read_text())}
    with np.load(folder / "triton.npz") as outputs:
        return rows, dict(outputs)


def arguments_of(row: dict) -> list:
    """The arguments of a recorded kernel, drawn by the seeds it was run with."""
    if row["name"] in SCALARS:
        x = np.random.default_rng([1000, 5]).standard_normal((16, 1000)).astype(np.float32)
        return [x, np.zeros_like(x), *SCALARS[row["name"]]]
    kind, shape = TYPES[row["name"].split("/")[1]], (row["H"], row["S"], row["D"])
    drawn = (np.random.default_rng([row["S"], row["D"], i]).standard_normal(shape).astype(np.float32) for i in range(3))
    q, k, v = (x.astype(kind).view(np.uint16) for x in drawn)
    return [q, k, v, np.zeros_like(q), row["S"], np.float32(row["scale"])]


def test_recorded_kernels_give_the_bits_of_the_gpu(recorded):
    rows, outputs = recorded
    for name, row in rows.items():
        given = arguments_of(row)
        compiled.read(row["ptx"]).run(given, grid=tuple(row["grid"]))
        output = given[1 if name in SCALARS else 3]
        wrong = int((output.view(outputs[name].dtype) != outputs[name]).sum())
        assert wrong == 0, f"{name}: {wrong} of {output.size} elements differ"


def test_without_ptxas_s_contraction_the_norm_differs(recorded):
    """The norm adds eps to a division: read with fmad=False it is another kernel."""
    rows, outputs = recorded
    given = arguments_of(rows["rmsnorm"])
    compiled.read(rows["rmsnorm"]["ptx"], fmad=False).run(given, grid=16)
    assert (given[1].view(np.int32) != outputs["rmsnorm"]).any()
