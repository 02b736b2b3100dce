"""This module writes a plan as an instantiation of a CATLASS kernel with its host: one product, a batch, or groups of rows.

Source of the names: :mod:`ascend.reports.catlass`. Not compiled by CANN here.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ascend.dialects import check_dialect
from ascend.emit.pto import host_body
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import simulate
from ascend.planner.batch import BatchPlan
from ascend.reports.catlass import ELEMENTS, LAYOUTS, arch_of, assemblies_of, instantiation
from ascend.tiling.fields import check_multiplied

#: C++ that copies, for each group, the row after its last one to the device.
GROUPS = """const int64_t ends[] = {{{ends}}};
    uint8_t *groups = allocated(sizeof(ends));
    check(aclrtMemcpy(groups, sizeof(ends), ends, sizeof(ends), ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");"""
#: Kernels that are printed but not written to files: their hosts take more than A, B and C, or they deal one product otherwise.
PRINTED_ONLY = ("MX", "split-k", "full load of A")


def check_catlass(s: Kernel, products: str = "one") -> None:
    """Raise ValueError if CATLASS's kernels cannot express the schedule; the message names the option and an alternative."""
    check_dialect("catlass", s.placed_on)
    check_multiplied("CATLASS", s, ELEMENTS)
    if s.dequantize:
        raise ValueError(
            f"CATLASS's basic kernel writes the int32 sums without scaling them, got --dequantize {s.dequantize}: leave it "
            "out, or use --emit ascendc, which scales the sums"
        )
    if s.format.scale_block:
        raise ValueError(
            f"got {s.operand}, but the emitted host code does not pass the scales that CATLASS's kernel for {s.operand} needs: "
            f"use --tiling, which prints the kernel's instantiation"
        )
    if not [row for row in assemblies_of(s, products) if row.name not in PRINTED_ONLY]:
        raise ValueError(
            "CATLASS's kernels assign whole tiles one by one and split k by their own rules, but this plan has the placement "
            f"{s.placement()!r} and {len(s.k_slices)} slice(s) of k: plan with --for catlass --split 1"
        )


def catlass_files(s: Kernel) -> dict[str, str | dict]:
    """Return the files of one product as name -> text, or data for JSON. Raises ValueError if CATLASS cannot express it."""
    return _files(s, "one", (s.m,), s.cores)


def of_most_work(plan: BatchPlan) -> Kernel:
    """Return the schedule of the m whose products take the most time together."""
    m = max(plan.plans, key=lambda m: plan.rows.count(m) * plan.plans[m].seconds)
    return plan.plans[m].schedule


def catlass_batch_files(plan: BatchPlan) -> dict[str, str | dict]:
    """Return the files of several products: a batch if all have the same m, else groups of rows.

    The predicted time is that of the plan, which deals products to groups of cores; the kernel deals the tiles of all
    products to all cores. Raises ValueError if CATLASS cannot express the product.
    """
    products = "batch" if len(plan.plans) == 1 else "groups"
    files = _files(of_most_work(plan), products, plan.rows, plan.groups * plan.cores)
    record = files["record.json"]
    assert isinstance(record, dict)
    return files | {"record.json": record | {"products": list(plan.rows), "predicted_us": 1e6 * plan.seconds}}


def _files(s: Kernel, products: str, rows: Sequence[int], cores: int) -> dict[str, str | dict]:
    check_catlass(s, products)
    row = next(row for row in assemblies_of(s, products) if row.name not in PRINTED_ONLY)
    tla = arch_of(s) == "Ascend950"
    count, all_rows = len(rows), sum(rows)
    own_rows = all_rows if products == "groups" else s.m
    plan = [
        f"// examples/{row.example}",
        f"constexpr uint32_t kM = {own_rows}, kN = {s.n}, kK = {s.k}, kProducts = {count}, kCores = {cores};",
        f"constexpr size_t kElementsOfA = size_t{{{all_rows}}} * kK, kElementsOfB = size_t{{kProducts}} * kK * kN;",
        f"constexpr size_t kElementsOfC = size_t{{{all_rows}}} * kN;",
        *instantiation(s, row),
    ]
    shape = "GemmCoord{kM, kN, kK}"
    before = {"one": [shape], "batch": ["kProducts", shape], "groups": [shape, "kProducts", "groups"]}[products]
    sides = (("a", "A", "kM, kK"), ("b", "B", "kK, kN"), ("c", "C", "kM, kN"))
    matrices = [
        text
        for name, side, sizes in sides
        for text in (
            name,
            *([f"tla::MakeLayout<{'Sum' if side == 'C' else 'Element'}, Layout{side}>({sizes})"] if tla else []),
        )
    ]
    text = host_body("catlass.cpp").replace("@header", row.header).replace("//@plan", "\n".join(plan))
    text = text.replace("//@tla\n", '#include "tla/layout.hpp"\n' if tla else "")
    text = text.replace("//@namespaces\n", "using namespace tla;\n" if tla else "")
    ends = ", ".join(map(str, accumulate(rows)))
    text = text.replace("    //@groups\n", f"    {GROUPS.format(ends=ends)}\n" if products == "groups" else "")
    text = text.replace("@arguments", ", ".join([*before, *matrices]))
    record: dict[str, Any] = {
        "dialect": "catlass", "chip": s.placed_on.name, "m": s.m, "k": s.k, "n": s.n, "operand": s.operand,
        "layout_a": LAYOUTS[s.layout][0], "layout_b": LAYOUTS[s.layout][1],
        "cores": s.used_cores if products == "one" else cores,
        "placement": s.placement(), "policy": row.policy, "kernel": row.kernel, "remark": row.remark,
        "predicted_us": 1e6 * simulate(s).seconds,
    }  # fmt: skip
    return {"gemm.cpp": text, "record.json": record}
