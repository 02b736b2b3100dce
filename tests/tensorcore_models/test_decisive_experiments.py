"""The decisive Hopper experiments: each hypothesis on the edge rules is a setting of the model that predicts what it should.

The experiments (inputs and, for each hypothesis, the predicted bits) come with the shared facts. Their predictions were made
independently of this package, so they pin both the default rules and every alternative. Floors are in none of them but
that of MATLAB-tensor-core.
"""

import json

import pytest

import tensorcore_models as tcm
from tensorcore_models.reference import dot_bits

#: hypothesis: edge rules
HYPOTHESES = {
    "MMA-Sim code": {"zero_operand": "minus126", "zero_c": "minus126", "exponent_floor": None},
    "zeros take no part": {"exponent_floor": None},
    "zeros take no part, subnormal c normalised": {"exponent_floor": None, "subnormal_c": "normalised"},
    "zero products take no part; c = 0 at -126": {"zero_c": "minus126", "exponent_floor": None},
    "zero products take no part; c = 0 at its smallest exponent": {"zero_c": "format_minimum", "exponent_floor": None},
    "zero operand at the smallest exponent, c = 0 too": {
        "zero_operand": "format_minimum",
        "zero_c": "format_minimum",
        "exponent_floor": None,
    },
    "NaN kept": {"tf32_nan": "kept"},
    "NaN kept (MATLAB)": {"tf32_nan": "kept"},
    "chain12 +c RNE": {},
    "chain21 +c RNE": {"group_order": (1, 0)},
}
#: How many experiments speak of a hypothesis.
COUNTS = {"MMA-Sim code": 114, "chain12 +c RNE": 7, "chain21 +c RNE": 7, "NaN kept": 2, "NaN kept (MATLAB)": 2}


@pytest.fixture(scope="module")
def experiments(shared):
    return json.loads((shared / "experiments" / "hopper_decisive.json").read_text())["experiments"]


def predicted(bits: int, prediction: str, fmt: tcm.Format) -> bool:
    if prediction in ("nan", "nonzero"):
        return fmt.decode_exact(bits).kind == "nan" if prediction == "nan" else bool(bits & fmt.magnitude_mask)
    both_nan = fmt.decode_exact(bits).kind == fmt.decode_exact(int(prediction, 16)).kind == "nan"
    # NaN payloads of DMMA are unknown: compared as NaN only.
    return bits == int(prediction, 16) or (both_nan and fmt.name == "fp64")


@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_model_predicts_what_the_hypothesis_says(experiments, hypothesis):
    rules = HYPOTHESES[hypothesis]
    wrong, seen = [], 0
    for experiment in experiments:
        if hypothesis not in experiment["predictions"]:
            continue
        ins = tcm.get_instruction("hopper", experiment["instruction"])
        ins = ins.with_rules(**{rule: value for rule, value in rules.items() if rule in ins.accumulator.edge_rules})
        a, b = ([int(x, 16) for x in experiment[key]] for key in ("a_bits", "b_bits"))
        bits = dot_bits(ins.accumulator, a, b, int(experiment["c_bits"], 16), ins.formats)
        seen += 1
        if not predicted(bits, experiment["predictions"][hypothesis], ins.formats[3]):
            wrong.append((experiment["id"], hex(bits), experiment["predictions"][hypothesis]))
    assert seen == COUNTS.get(hypothesis, 70)
    assert not wrong


def test_the_default_floor_of_fp16_results_is_the_one_of_matlab_tensor_core(experiments):
    """c = 0 and products far below the floor: one unit of 2^(-21 - 25) decides a tie, half a unit is lost."""
    cases = [e for e in experiments if e["id"].startswith("H2")]
    for experiment in cases:
        ins = tcm.get_instruction("hopper", experiment["instruction"])
        a, b = ([int(x, 16) for x in experiment[key]] for key in ("a_bits", "b_bits"))
        bits = dot_bits(ins.accumulator, a, b, int(experiment["c_bits"], 16), ins.formats)
        assert bits == int(experiment["predictions"]["MATLAB-tensor-core, run"], 16), experiment["id"]
    assert len(cases) == 13
