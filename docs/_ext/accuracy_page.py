"""Writes the page of accuracy from its CSV: ``python docs/_ext/accuracy_page.py > docs/accuracy.md``."""

import csv
from pathlib import Path

import tensorcore_models as tcm

ROWS = Path(__file__).resolve().parents[1] / "accuracy.csv"

HEADER = """# Accuracy on one page

<!-- Generated from docs/accuracy.csv by `python docs/_ext/accuracy_page.py > docs/accuracy.md`; do not edit. -->

All numbers of this page were measured here on the models by `python tools/measure_accuracy.py`. The file
{{download}}`accuracy.csv` has them, too.

## Products

Each cell has the *largest / mean* error of the {results} results of one product, in bits. The bits of a result are -log2 of its
error divided by |A||B|, the sum of the magnitudes of its products. FP32's unit roundoff is 24 bits. The operands are FP32,
{shape}, drawn with seed 0, so the numbers are samples. The last column states the evidence for the unit's arithmetic;
*hardware* means that the tests replay recorded outputs of a chip.

"""

FUNCTIONS = """
## Special functions

The errors were measured here against the exact function in FP64. They are relative to the exact result, in bits (-log2), except
for `sin`, `cos`, `lg2`, `__logf`, SiLU and GELU, whose errors are absolute. The column of operands has one of these words:

- *all*: all operands between 2^-30 and the largest one that has a normal result, or the binades that repeat
  ([the domains](special_functions.md#errors-over-all-operands)); for 16-bit forms all operands that have a normal result.
- *sampled*: 2^24 operands of that domain. For divisions the samples are pairs with all fractions and signs and exponents from
  -62 to 62, drawn with seed 60.

The last column states the evidence for the bits of the results.
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
    """Return a table for each method, with a line for each unit and a column for each kind of data."""
    data = list(dict.fromkeys(row["data"] for row in found))
    lines = []
    for method in dict.fromkeys(row["method"] for row in found):
        mine = [row for row in found if row["method"] == method]
        lines += ["", f"### {method}", "", f"| unit | {' | '.join(data)} | evidence for the unit |"]
        lines += ["|" + "---|" * (len(data) + 2)]
        for unit in dict.fromkeys(row["unit"] for row in mine):
            of_unit = {row["data"]: row for row in mine if row["unit"] == unit}
            cells = [f"{of_unit[kind]['largest_bits']} / {of_unit[kind]['mean_bits']}" for kind in data]
            evidence = of_unit[data[0]]["evidence"]
            lines.append(f"| {unit} | {' | '.join(cells)} | {evidence} |")
    return lines


def functions(found: list[dict[str, str]]) -> str:
    """Return a table of the instructions and a table of the library functions."""
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
