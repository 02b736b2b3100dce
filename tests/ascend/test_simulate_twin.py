"""The compiled simulator against the plain-Python one: every operation's start and end."""

import pytest
from pipes_reference import run_phase

import ascend
from ascend.pipes.build import build_program
from ascend.pipes.simulate import run_program
from ascend.programs.program import PIPES
from ascend.schedule import build_schedule

A = ascend.get_chip("910A")
B3 = ascend.get_chip("910B3")
LOSSY = A.with_calibration()
A5 = ascend.get_chip("950")
LOSSY_B3 = B3.replace(sync_cycles_per_block=60.0)
ODD = A.replace(cores=3, hbm_bytes_per_second=250e9, l2_read_rate=60.0, ub_to_ddr_rate=35.0)

CASES = {
    "double": (A, (176, 64, 176), (352, 300, 500), {}),
    "single": (A, (176, 64, 176), (352, 300, 500), {"buffering": "single"}),
    "one accumulator slot": (A, (192, 64, 192), (200, 300, 700), {}),
    "edges": (A, (48, 32, 80), (100, 130, 333), {}),
    "narrower than a block": (A, (48, 32, 80), (20, 10, 50), {}),
    "k groups": (A, (64, 48, 64), (70, 500, 260), {"n_fused": 3}),
    "k groups in place": (A, (64, 48, 64), (70, 500, 260), {"n_fused": 3, "mode": "termwise_inplace"}),
    "fused": (A, (64, 48, 64), (70, 500, 260), {"n_fused": 3, "mode": "fused"}),
    "fused single": (A, (64, 48, 64), (70, 500, 260), {"n_fused": 3, "mode": "fused", "buffering": "single"}),
    "elementwise, four terms": (A, (64, 48, 64), (70, 200, 260), {"mode": "elementwise", "terms": 4}),
    "one term": (A, (64, 48, 64), (70, 200, 260), {"terms": 1}),
    "reseeded": (A, (64, 48, 64), (70, 500, 260), {"n_fused": 3, "reseed_l0c": True}),
    "reseeded, many strips": (
        A,
        (144, 48, 144),
        (150, 300, 600),
        {"n_fused": 3, "reseed_l0c": True, "buffering": "single"},
    ),
    "reseeded in place": (
        A,
        (144, 48, 144),
        (150, 300, 600),
        {"n_fused": 3, "reseed_l0c": True, "mode": "termwise_inplace"},
    ),
    "reseeded fused": (A, (64, 48, 64), (70, 500, 260), {"n_fused": 3, "reseed_l0c": True, "mode": "fused"}),
    "calibrated losses": (LOSSY, (64, 48, 64), (70, 500, 260), {}),
    "calibrated losses, single": (LOSSY, (64, 48, 64), (70, 500, 260), {"buffering": "single"}),
    "FIXPIPE": (B3, (64, 48, 64), (70, 500, 260), {}),
    "FIXPIPE fp32": (B3, (64, 48, 64), (70, 500, 260), {"terms": 1, "operand": "fp32"}),
    "template norm": (
        B3,
        (64, 48, 64),
        (70, 500, 260),
        {"terms": 1, "kernel": "grid", "template": "norm", "layout": "nd"},
    ),
    "template mdl": (
        B3,
        (16, 16, 32),
        (70, 200, 100),
        {"terms": 1, "kernel": "grid", "template": "mdl", "layout": "nt"},
    ),
    "template mdl, fused": (B3, (64, 48, 64), (70, 200, 260), {"kernel": "grid", "template": "mdl", "mode": "fused"}),
    "template mdl with losses": (
        LOSSY_B3,
        (64, 48, 64),
        (70, 200, 260),
        {"terms": 1, "kernel": "grid", "template": "mdl"},
    ),
    "adaptive order": (
        B3,
        (64, 48, 64),
        (300, 100, 320),
        {"kernel": "grid", "swizzle": ascend.Swizzle(4, 0, adaptive=True), "balanced": False},
    ),
    "dequantized": (
        B3,
        (64, 64, 64),
        (70, 500, 260),
        {"terms": 1, "kernel": "grid", "operand": "int8", "dequantize": "vector"},
    ),
    "unaligned rows": (A5, (64, 48, 64), (70, 500, 263), {"terms": 1, "kernel": "grid", "layout": "nt"}),
    "MX": (A5, (64, 64, 64), (70, 500, 263), {"terms": 1, "kernel": "grid", "operand": "mxfp8"}),
    "widened through memory": (
        B3,
        (64, 48, 64),
        (70, 500, 263),
        {"terms": 1, "kernel": "grid", "operand": "w8a16", "layout": "nd"},
    ),
    "widened into L1": (A5, (64, 64, 64), (70, 500, 263), {"terms": 1, "kernel": "grid", "operand": "a8w4mx"}),
    "own rates bind": (ODD, (32, 32, 48), (200, 100, 150), {}),
}


def fast_records(program, all_cores, serial):
    latency = "serial" if serial else "pipelined"
    timeline = run_program(program, all_cores=all_cores, record=True, latency=latency)
    rows = []
    for phase in timeline.phases:
        flat, r = phase.flat, phase.records
        rows.append(
            sorted(
                (int(core), int(flat.op_pipe[op]), start, end, flat.kinds[op])
                for core, op, start, end in zip(r.core, r.operation, r.start.tolist(), r.end.tolist(), strict=True)
            )
        )
    return rows


@pytest.mark.sweep(14)
@pytest.mark.parametrize("serial", [False, True], ids=["pipelined", "serial"])
@pytest.mark.parametrize("all_cores", [False, True], ids=["one core", "all cores"])
@pytest.mark.parametrize("case", CASES)
def test_every_operation_starts_and_ends_alike(case, all_cores, serial):
    chip, block, (m, k, n), options = CASES[case]
    if all_cores:
        chip = chip.replace(cores=3)
    options = dict(options)
    schedule = build_schedule(m, k, n, chip, ascend.Blocking(*block), **options)
    program = build_program(schedule)
    fast = fast_records(program, all_cores, serial)
    for phase, rows in zip(program.phases, fast, strict=True):
        slow = sorted(
            (core, pipe, start, end, kind)
            for core, pipe, kind, start, end in run_phase(program, phase, all_cores, serial)
        )
        assert len(slow) == len(rows) > 0
        for a, b in zip(rows, slow, strict=True):
            assert a[:2] + a[4:] == b[:2] + b[4:], (PIPES[a[1]], a, b)
            # Both add the same durations in another order: 1e-6 cycles is far above that rounding, far below a cycle.
            assert a[2] == pytest.approx(b[2], abs=1e-6)
            assert a[3] == pytest.approx(b[3], abs=1e-6)
