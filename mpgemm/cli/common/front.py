"""Makes the first screen, which `mpgemm` alone prints: ten commands in three groups. README and site show the same table."""

from dataclasses import dataclass

from mpgemm.reporting.report import wrapped


@dataclass(frozen=True)
class First:
    """`First` is one of the ten commands to start with: its question, and how to call it."""

    command: str
    question: str
    arguments: str  # of an example
    python: (
        str  # the call in Python; `a`, `b`: FP32 matrices, `x`, `y`: FP16 matrices, `d`: a kernel's product of x and y
    )


#: The ten commands, by group.
DOORS: dict[str, tuple[First, ...]] = {
    "Ascend and SGEMM-cube": (
        First("evaluate", "Is SGEMM-cube accurate enough for my matrices?", "A.npy B.npy", "mpgemm.verdict(a, b)"),
        First(
            "plan",
            "Which blocks should an Ascend kernel take, and how fast are they?",
            "4096 4096 4096 --chip 910A --top 1",
            'ascend.plan(1024, 1024, 1024, "910A")',
        ),
    ),
    "GPU kernels": (
        First(
            "check",
            "Is my kernel's result right, and if not, what is wrong?",
            "out.npy A.npy B.npy --engine h100",
            'mpgemm.testing.assert_gemm_close(d, x, y, engine="h100")',
        ),
        First(
            "tolerance",
            "What may a test of my kernel allow?",
            "--engine h100 --k 1024",
            'mpgemm.tolerance("h100", k=1024)',
        ),
        First(
            "predict",
            "Which bits does a GPU library return?",
            "A.npy B.npy --gpu h100 --library cutlass --config tile_k=32",
            'tcm.default_instruction("h100", "fp16").gemm(x, y)',
        ),
        First(
            "whodunit",
            "Which GPU, order of k or method made these bits?",
            "A.npy B.npy out.npy",
            "mpgemm.whodunit(x, y, d)",
        ),
        First(
            "trace",
            "Where do two recorded runs of a model first differ?",
            "compare training rollout",
            'mpgemm.traces.TraceRecorder("training")',
        ),
    ),
    "Numerics": (
        First(
            "compare",
            "Which method recovers FP32, and which is the cheapest?",
            "--methods markidis ootomo --engines a100 h100",
            'mpgemm.recovered_gemm(a, b, method="ootomo", engine="h100")',
        ),
        First(
            "explain",
            "Why do two units differ on one dot product?",
            "--engine a100 h100 --distribution normal --k 1024",
            'mpgemm.explain("ootomo", a[0], b[:, 0], engine="h100")',
        ),
        First(
            "models",
            "What does an instruction compute, and on what evidence?",
            "h100 --a-format fp16",
            'tcm.get_instruction("h100", "mma.m16n8k16.f32.f16.f16.f32")',
        ),
    ),
}


def first_screen() -> str:
    """Return the text of the first screen: for each command its question and an example to type."""
    lines = ["Matrix units predicted bit for bit, FP32 recovered from them. Ten commands:"]
    for door, commands in DOORS.items():
        lines += ["", f"{door}:"]
        for first in commands:
            lines += [f"  {first.question}", f"    mpgemm {first.command} {first.arguments}"]
    lines += ["", "mpgemm --help lists all commands, mpgemm COMMAND --help the options of one, with examples."]
    return "\n".join(wrapped(line, hang=" " * (len(line) - len(line.lstrip()) + 2)) for line in lines)
