"""Writes the page of accuracy from its CSV: ``python docs/_ext/accuracy_page.py > docs/accuracy.md``."""

import csv
from pathlib import Path

import tensorcore_models as tcm

ROWS = Path(__file__).resolve().parents[1] / "accuracy.csv"

HEADER = """# Accuracy on one page

<!-- Generated from docs/accuracy.csv by `python docs/_ext/accuracy_page.py > docs/accuracy.md`; do not edit. -->

Measured here on the models, by `python tools/measure_accuracy.py`. The rows are in
{{download}}`accuracy.csv`, beside this page.

## Products

Each cell is the *largest / mean* error of the {results} results of one product, in bits: -log2 of the error divided by
|A||B|, the sum of the magnitudes of the products of that result. FP32's own unit roundoff is 24 bits. The operands are FP32,
{shape}, drawn with seed 0, so the numbers are samples. The last column says what the bits of the
unit rest on: *hardware* means that outputs of a chip were recorded and are replayed by the tests.

"""

FUNCTIONS = """
## Special functions

Measured against the exact function, in FP64. *All* operands are all between 2^-30 and the largest one that has a normal
result, or the binades that repeat ([the domains](special_functions.md#errors-over-all-operands)); of 16-bit forms they are
all that have a normal result. *Sampled* are 2^24 operands of that domain, and pairs of divisions: all fractions and signs,
exponents from -62 to 62, seed 60. Errors are relative to the exact result, in bits, -log2; those of `sin`, `cos`, `lg2`,
`__logf`, SiLU and GELU are absolute. The last column says what the bits of the results rest on.
"""

TABLES = {"PTX": "PTX's instructions", "CUDA": "CUDA's and torch's library functions"}
FUNCTION_HEAD = """| function | unit | operands | error | largest | mean | evidence |
|---|---|---|---|---|---|---|
"""


def rows() -> list[dict[str, str]]:
    """Return the rows of the CSV."""
    with ROWS.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def products(found: list[dict[str, str]]) -> list[str]:
    """Return a table for each method: a line for each unit, a column for each kind of data."""
    data = list(dict.fromkeys(row["data"] for row in found))
    lines = []
    for method in dict.fromkeys(row["method"] for row in found):
        mine = [row for row in found if row["method"] == method]
        lines += ["", f"### {method}", "", f"| unit | {' | '.join(data)} | bits of the unit rest on |"]
        lines += ["|" + "---|" * (len(data) + 2)]
        for unit in dict.fromkeys(row["unit"] for row in mine):
            of_unit = {row["data"]: row for row in mine if row["unit"] == unit}
            cells = [f"{of_unit[kind]['largest_bits']} / {of_unit[kind]['mean_bits']}" for kind in data]
            evidence = of_unit[data[0]]["evidence"]
            lines.append(f"| {unit} | {' | '.join(cells)} | {evidence} |")
    return lines


def functions(found: list[dict[str, str]]) -> str:
    """Return a table of the instructions and one of the library functions."""
    text = ""
    for kind, title in TABLES.items():
        lines = [
            f"| `{row['instruction']}` | {row['unit']} | {int(row['results']):,}, "
            f"{'all' if row['coverage'] == 'exhaustive' else 'sampled'} | {row['method']} | {row['largest_bits']} | "
            f"{row['mean_bits']} | {row['evidence']} |\n"
            for row in found
            if tcm.get_function(row["unit"], row["instruction"]).row.kind == kind
        ]
        text += f"\n### {title}\n\n{FUNCTION_HEAD}{''.join(lines)}"
    return text


def page() -> str:
    """Return the whole page as Markdown."""
    found = rows()
    of_products = [row for row in found if row["kind"] == "product"]
    header = HEADER.format(results=of_products[0]["results"], shape="32 x 1024 times 1024 x 32")
    of_functions = [row for row in found if row["kind"] == "function"]
    return header.rstrip() + "\n" + "\n".join(products(of_products)) + "\n" + FUNCTIONS + functions(of_functions)


if __name__ == "__main__":
    print(page(), end="")
