"""Every public result shows itself: a table in notebooks, a data frame, a short repr. A new result cannot be forgotten."""

import importlib
import inspect
import json
import pkgutil
import tempfile

import numpy as np
import pytest

import ascend
import mpgemm
import tensorcore_models as tcm
from ascend.emit.ascendc_check import AscendCCheck
from ascend.emit.check import PtoCheck
from ascend.emit.faults import PtoFault
from ascend.reports.overlap import MeasuredCollective, plan_overlap
from ascend.reports.overlay import Overlay, PipeTimes
from ascend.reports.profile import ProfileRow
from mpgemm.exact.conditioning import condition_of_product
from mpgemm.experiments.cases import given_case
from mpgemm.experiments.comparison import compare
from mpgemm.experiments.evaluate import evaluate
from mpgemm.experiments.methods import build_methods
from mpgemm.experiments.promotion_seeds import PromotionOverSeeds
from mpgemm.experiments.stacks import judge_stack
from mpgemm.reporting.report import json_text
from mpgemm.testing import check_gemm
from mpgemm.testing.attention_tolerance import attention_tolerance
from tensorcore_models import probing
from tensorcore_models.compiled.sass import SassComparison
from tensorcore_models.engines.description import words_of_engine
from tensorcore_models.gpu.costs import predicted
from tensorcore_models.results import Result

ROOMS = ("accumulators", "catalogue", "compiled", "hardware", "libraries", "probing", "probing.formal", "reference")
PACKAGES = ["mpgemm", "mpgemm.inputs", "ascend", "tensorcore_models", *(f"tensorcore_models.{room}" for room in ROOMS)]
#: Public classes that are no results: what functions take, and what computes.
NO_RESULTS = {
    "mpgemm": {"ErrorMeter", "ExactResult", "RecoveryMethod"},
    "ascend": {"Blocking", "Chip", "Grid", "Rejection", "Swizzle", "TileSchedule", "PlannedWay"},
    "tensorcore_models": {"BlockScaled", "Format", "Function", "ScaleRule", "Scaling"},
    "tensorcore_models.compiled": {
        "AMDProgram",
        "FinishedRecipe",
        "KernelLimits",
        "KernelProgram",
        "PTXProgram",
        "PointerTable",
        "Structure",
        "TensorMap",
    },
    "tensorcore_models.libraries": {
        "AttentionRecipe",
        "Chain",
        "Epilogue",
        "ProfiledProduct",
        "Recipe",
        "Recording",
        "Sum",
    },
    "tensorcore_models.probing": {"Aimed", "Box", "ProbeSet", "ProbeVector", "Solver", "Tree"},
    "tensorcore_models.probing.formal": {"Answer", "Way"},
    "tensorcore_models.reference": {"Pass"},
}
A = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)
B = np.random.default_rng(1).standard_normal((32, 3)).astype(np.float32)
UNIT = "hopper:mma.m16n8k16.f32.f16.f16.f32"


def plan():
    return ascend.plan(64, 64, 64, "910A", top=1, rank="analytic")[0]


def box():
    return probing.Box.of_instruction("ampere:mma.m16n8k8.f32.f16.f16.f32")


def stack_verdict():
    case = given_case(A, B)
    methods = build_methods(["fp32", "sgemm_cube"])
    return judge_stack([case], methods, evaluate([case], methods))


def formal_verdict():
    formal = importlib.import_module("tensorcore_models.probing.formal")
    return formal.FormalVerdict("witness", witness(), results=(1, 2), assumptions=("finite operands",), backend="z3")


def witness():
    formal = importlib.import_module("tensorcore_models.probing.formal")
    formats = importlib.import_module("tensorcore_models.probing.formal.encoding").formats_of(tcm.get_instruction(UNIT))
    return formal.Witness((0x3C00, 0), (0x3C00, 0x4000), 0, formats)


def scaled_dot():
    unit = tcm.default_instruction("h100", "e4m3fn", path="wgmma")
    scaling = tcm.read_scales(0.5, 0.25, 1, 32, 1)
    return importlib.import_module("mpgemm.explanations.scaled_dots").explain_scaled(
        unit, np.ones(32), np.ones(32), scaling
    )


def kernel_program():
    body = """{ .reg .b32 %r<3>; .reg .b64 %d<3>; ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.global.b32 %r1, [%d1];
    add.f32 %r2, %r1, %r1; st.global.b32 [%d2], %r2; ret; }"""
    text = f".version 8.0\n.target sm_80\n.visible .entry twice(.param .u64 x, .param .u64 y) .reqntid 32\n{body}\n"
    return importlib.import_module("tensorcore_models.compiled").read(text)


def kernel_recipe():
    return kernel_program().recipe([A[0], np.zeros(1, np.float32)])


def kernel_comparison():
    compiled = importlib.import_module("tensorcore_models.compiled")
    program, arguments = kernel_program(), [A[0], np.zeros(1, np.float32)]
    return compiled.compare(program, program, arguments=arguments, grids=(1, 1))


def kernel_run():
    text = ".version 8.0\n.target sm_80\n.visible .entry nothing() .reqntid 32 { ret; }\n"
    return importlib.import_module("tensorcore_models.compiled").read(text).run([])


def traces():
    comparing, reading = (importlib.import_module(f"mpgemm.traces.{name}") for name in ("comparing", "reading"))
    recording = importlib.import_module("mpgemm.traces.recording")
    with tempfile.TemporaryDirectory() as folder:
        for name in "ab":
            with recording.TraceRecorder(f"{folder}/{name}") as trace:
                trace.record("lm_head", output=A + (name == "b"))
        return comparing.compare_traces(*(reading.read_trace(f"{folder}/{name}") for name in "ab"))


MAKERS = {
    "AttentionTolerance": lambda: attention_tolerance(*np.ones((3, 1, 4, 8), np.float16), engine="h100"),
    "Advice": lambda: ascend.advise(64, 64, 64, "910A", simulated=1),
    "Attribution": lambda: mpgemm.attribute("ootomo", A[0], B[:, 0], engine="a100"),
    "BatchPlan": lambda: ascend.plan_batch([64, 64], 64, 64, "310P3", terms=1)[0],
    "Characterisation": lambda: probing.characterise(tcm.get_instruction("ampere:mma.m16n8k8.f32.f16.f16.f32")),
    "Comparison": lambda: compare(["fp16", "ootomo"], ["a100"], A, B),
    "ComparisonRecord": lambda: compare(["fp16"], ["a100"], A, B)[0],
    "Count": lambda: mpgemm.recovered_gemm_report(A, B, method="ozaki_int8:slices=auto").count,
    "Explanation": lambda: mpgemm.explain("fp16", A[0, :4], B[:4, 0], engine="a100"),
    "ErrorReport": lambda: mpgemm.errors(A @ B, A, B),
    "Identification": lambda: probing.identify(tcm.get_instruction("ampere:mma.m16n8k8.f32.f16.f16.f32"), vectors=1000),
    "KernelComparison": kernel_comparison,
    "KernelRecipe": kernel_recipe,
    "KernelRun": kernel_run,
    "MethodBound": lambda: mpgemm.method_bound(A, B, method="ootomo", engine="a100"),
    "Plan": plan,
    "AscendCCheck": lambda: AscendCCheck("kernel", "mix", 4, 2, (PtoFault("count", None, "SetDim(2)"),)),
    "Overlay": lambda: Overlay(ProfileRow("mm", 8, 8, 8, "fp16", 1e-5), 9e-6, (PipeTimes("CUBE", 5e-6, 4e-6),)),
    "OverlapPlan": lambda: plan_overlap(
        64, 64, 64, "910B2", [MeasuredCollective(1e3, 1e-5), MeasuredCollective(1e6, 2e-5)], most_parts=2
    ),
    "PtoCheck": lambda: PtoCheck("gemm.cpp", (PtoFault("race", 0, "L1: MTE2 writes, MTE1 reads"),), "one chain", 4, 0, 0.0),
    "Point": lambda: ascend.pareto(64, 64, 64, "910A")[0],
    "PromotionAdvice": lambda: mpgemm.advise_promotion(A, B, "h100"),
    "Conditioning": lambda: condition_of_product(A, B),
    "PromotionOverSeeds": lambda: PromotionOverSeeds.of([mpgemm.advise_promotion(A, B, "h100")]),
    "RecoveryResult": lambda: mpgemm.recovered_gemm_report(A, B, method="ootomo", engine="h100"),
    "RooflinePoint": lambda: plan().roofline,
    "SliceAdvice": lambda: mpgemm.slice_advice(A, B, 12, ["ozaki_int8"]),
    "SgemmResult": lambda: mpgemm.sgemm_report(A, B),
    "ScaledExplanation": scaled_dot,
    "SideBySide": lambda: mpgemm.side_by_side("fp16", A[0], B[:, 0], engines=("a100", "h100")),
    "Timeline": lambda: ascend.simulate(plan().schedule),
    "KernelCheck": lambda: check_gemm(A @ B, A.astype(np.float16), B.astype(np.float16), engine="h100"),
    "TraceComparison": traces,
    "Tolerance": lambda: mpgemm.tolerance("h100", data=(A, B), check=(1e-2, 1e-2)),
    "Traffic": lambda: ascend.traffic(ascend.Blocking(64, 64, 64), 100, 200, 300, ascend.get_chip("910A")),
    "Vacuity": lambda: mpgemm.check_tolerance(A, B, rtol=1e-2),
    "Verdict": lambda: mpgemm.verdict(A, B),
    "PredictedRate": lambda: predicted(UNIT, "sm_90"),
    "SassComparison": lambda: SassComparison("gemm", {"FADD": (8, 0)}, "contracted", "8 additions became multiply-adds"),
    "StackVerdict": stack_verdict,
    "FormalVerdict": formal_verdict,
    "Whodunit": lambda: mpgemm.whodunit(A.astype(np.float16), B.astype(np.float16), A @ B, methods=[]),
    "Witness": witness,
    "Words": lambda: words_of_engine(tcm.get_instruction(UNIT)),
}  # fmt: skip


def result_classes():
    """Every class of the packages that is a result, imported or not so far."""
    for package in ("tensorcore_models", "ascend", "mpgemm"):
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                try:
                    importlib.import_module(found.name)
                except ImportError:  # an extra that is not installed
                    continue
    left, seen = [Result], set()
    while left:
        for found in left.pop().__subclasses__():
            left.append(found)
            seen.add(found)
    return seen


def test_every_result_is_made_here():
    assert {found.__name__ for found in result_classes()} == set(MAKERS)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_class_is_a_result_or_named(name):
    package = importlib.import_module(name)
    computing = (Result, tcm.Accumulator, tcm.Engine, BaseException)
    others = {
        word
        for word in package.__all__
        if inspect.isclass(getattr(package, word)) and not issubclass(getattr(package, word), computing)
    }
    assert others == NO_RESULTS.get(name, set())


@pytest.mark.sweep(15)
@pytest.mark.parametrize("name", MAKERS)
def test_a_result_shows_itself(name):
    found = MAKERS[name]()
    assert type(found).__name__ == name
    rows = found.to_rows()
    assert rows and all(list(row) == list(rows[0]) for row in rows)
    page = found._repr_html_()
    assert page.count("<tr>") >= len(rows) or name == "Verdict"  # which shows its sentences
    assert all(page.count(f"<{tag}") == page.count(f"</{tag}>") for tag in ("table", "tr", "ul", "caption"))
    assert type(found).sentences is not Result.sentences or type(found).__str__ is not Result.__str__
    assert json.loads(json_text(found.to_dict()))  # of its own, or made of rows and sentences
    assert len(repr(found)) < 200 and "\n" not in repr(found) and "object at 0x" not in repr(found) + str(found)
    pandas = pytest.importorskip("pandas")
    frame = found.to_dataframe()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == list(rows[0]) and len(frame) == len(rows)
