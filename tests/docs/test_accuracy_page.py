"""The page of accuracy: made of its CSV, whose rows are measured again here."""

from pathlib import Path

import accuracy_page
import check_functions
import measure_accuracy
import pytest

import tensorcore_models as tcm

ROWS = [tuple(row.values()) for row in accuracy_page.rows()]


def test_the_page_is_the_rows():
    page = Path(accuracy_page.__file__).parents[1] / "accuracy.md"
    assert accuracy_page.page() == page.read_text(encoding="utf-8")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("unit", ["h100", "910a", "wormhole"])
def test_products_have_the_errors_of_their_rows(unit):
    methods = ("fp16", "ootomo", "sgemm_cube")
    measured = [tuple(map(str, row)) for row in measure_accuracy.product_rows([unit], methods)]
    assert measured == [row for row in ROWS if row[1] == unit and row[3] in methods and row[0] == "product"]
    assert len(measured) == 5 * (2 if unit == "wormhole" else 3) or unit == "wormhole"


def test_every_unit_and_method_of_the_table_has_rows_for_all_data():
    products = [row for row in ROWS if row[0] == "product"]
    assert {row[1] for row in products} == set(measure_accuracy.UNITS)
    assert {row[3] for row in products} == set(measure_accuracy.METHODS)
    pairs = [(row[1], row[3]) for row in products]
    assert all(pairs.count(pair) == len(measure_accuracy.DATA) for pair in set(pairs))


@pytest.mark.full  # 8 million operands: 2 s
@pytest.mark.parametrize("name", ["rcp.approx.ftz.f32", "rcp.rn.f32", "tanh.approx.bf16"])
def test_a_function_has_the_error_of_its_row(tmp_path, name):
    check_functions.measure([name], tmp_path / "errors.json")
    (measured,) = measure_accuracy.function_rows(tmp_path / "errors.json")
    assert tuple(map(str, measured)) in ROWS


def test_every_function_that_is_measured_has_a_row():
    """Of CUDA's and torch's functions, and of instructions that are the unit alone, have 16 bits, or divide."""
    functions = {row[2]: row for row in ROWS if row[0] == "function"}
    assert list(functions) == list(check_functions.MEASURED)
    library = {function.name for function in tcm.list_functions("hopper") if function.row.kind == "CUDA"}
    assert library <= set(functions)
    sampled = {*check_functions.SAMPLED, *check_functions.DIVISIONS}
    assert {name for name, row in functions.items() if row[6] == "sampled"} == sampled
