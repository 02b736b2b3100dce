"""Repeats the choices and defaults that help texts show, because the modules that define them take long to import.

`tests/mpgemm/test_options.py` compares each constant with its definition.
"""

# Ascend: ascend.schedule, .planner, .accuracy, .reports.tiling, .reports.calibration.
KERNELS = ("paper", "grid", "vector")
PLAN_KERNELS = ("grid", "paper")
RANKS = ("time", "traffic", "analytic")
SIMULATED = {"grid": 12, "paper": 200}
DISTRIBUTIONS = ("normal", "uniform", "positive")
TARGETS = ("ascendc", "catlass", "pto", "triton")
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather")
ASSUMED_SIZE = (5632, 2816, 5632)

# Methods of `evaluate`: mpgemm.experiments.methods; metrics: mpgemm.exact.errors.
NAMED_METHODS = (
    "fp16", "fp16_accumulate", "fp32", "fp32_numpy", "fp32_chain", "hf32", "fp64", "sgemm_cube", "sgemm_cube_scaled",
)  # fmt: skip
ON_REQUEST = ("bf16x6", "amx")
ORDERS = ("elementwise", "termwise", "termwise_inplace")
STEP_ORDERS = ("sequential", "pairwise", "exact")
FIGURE_FORMATS = ("png", "pdf", "svg")
FIGURE_STYLES = ("screen", "one-column", "two-column")
METRICS = ("relative_frobenius", "relative_inf", "normwise", "componentwise", "rowwise")

# Curves and counts: mpgemm.experiments.curves, .slice_advice.
AXES = ("k", "exponent", "condition")
CURVE_SHAPE = (16, 1024, 16)
COUNTED_METHODS = ("ozaki_int8", "ozaki2_int8", "ozaki_fp8", "ozaki2_fp8")
COST_DEVICES = ("a100", "h100", "b200", "b300", "mi300x")

# Probing: tensorcore_models.probing.identify.solver, .suites, .formal.
SECONDS_EACH, SECONDS_TOTAL = 10.0, 120.0
SUITES = ("fasi", "fttn", "gnft", "hawkeye", "valpey")
SOLVERS = ("bitwuzla", "z3", "cvc5")
SOLVER_SECONDS, SOLVER_MEGABYTES = 60.0, 8192

# Rows and columns of `tolerance` without data: mpgemm.testing.tolerances.
TOLERANCE_SHAPE = (256, 256)

# Parts of `campaign`: mpgemm.campaign.parts.
CAMPAIGN_PARTS = ("units", "emulation", "recovery", "functions", "libraries", "times")
