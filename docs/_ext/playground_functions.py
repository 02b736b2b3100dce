"""Makes the playground's data of special functions: sequences for the kernel, the unit's tables, and evidence."""

from typing import Any

from tensorcore_models.catalogue.nvidia import ARCHITECTURES
from tensorcore_models.functions import Function, list_functions
from tensorcore_models.functions.sequences import OPERATIONS, allocated
from tensorcore_models.functions.tables import UNITS, kernel_tables, tables


def functions_data() -> dict[str, Any]:
    """Return the functions by their names, the architectures that have them, and the tables.

    Packed instructions are left out, because each of their numbers is the result of the instruction of one number.
    """
    coefficients, units = kernel_tables()
    evidence: dict[str, int] = {}
    rows, architectures = dict[str, dict](), dict[str, dict[str, int]]()
    for arch in ARCHITECTURES:
        functions = [function for function in list_functions(arch) if not function.row.packed]
        rows |= {function.name: _row(function) for function in functions}
        architectures[arch] = {f.name: evidence.setdefault(f.evidence, len(evidence)) for f in functions}
    return {
        "rows": rows,
        "architectures": architectures,
        "evidence": list(evidence),
        "operations": list(OPERATIONS),
        "unitBits": {name: unit.bits for name, unit in UNITS.items()},
        "tables": [[name, len(table.rows), table.fraction_bits] for name, table in tables().items()],
        "firstTable": {name: unit.tables[0] for name, unit in UNITS.items()},
        "coefficients": [int(x) for x in coefficients.ravel()],
        "units": [int(x) for x in units.ravel()],
    }


def _row(function: Function) -> dict[str, Any]:
    sequence, row = allocated(function.sequence), function.row
    return {
        "operands": list(row.operands),
        "operand": row.operand,
        "result": row.result,
        "rounding": row.rounding,
        "error": row.error or f"the rounding of its result, {row.rounding}",
        "steps": sequence.steps,
        "counts": [len(step.sources) for step in function.sequence.steps],
        "constants": sequence.constants,
        "register": sequence.result,
    }
