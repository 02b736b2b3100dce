"""Writes a result outside of its certified bound to a file with its operands and recipe, and computes it again from there."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpgemm.bounds.bounded_product import Data, EngineProduct
from mpgemm.bounds.kernel_bound import KernelBound, used_operands
from mpgemm.bounds.kernel_model import model_results
from mpgemm.bounds.kernel_order import kernel_order
from mpgemm.bounds.norms import Lines
from mpgemm.bounds.watching import JudgedProduct, OutsideBound, held_product, hold, quick_run_bound
from mpgemm.exact.product import exact_gemm
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.methods import NAMED_METHODS, CubeOptions, build_methods, short_chains
from mpgemm.inputs.files import array_names, read_array
from mpgemm.recovery.engines import plain_engine
from mpgemm.recovery.run import prepare
from mpgemm.reporting.provenance import environment
from tensorcore_models.files import atomic_writer
from tensorcore_models.machine.instruction_sets import active_isa, available_isas, set_isa

#: Version of the file format.
VERSION = 1


def write_outside(error: OutsideBound, folder: Path) -> Path:
    """Write a file that reproduces a result outside of its bound, and return its path; raise OSError if that fails."""
    product = error.product
    arrays = {"a": product.a, "b": product.b, "computed": error.computed}
    if product.c is not None:
        arrays["c"] = product.c
    facts = {
        "version": VERSION, "product": product.label, "recipe": dict(product.recipe), "element": list(error.place),
        "error": error.error, "bound": error.bound, "outside": error.elements, "instruction_set": active_isa(),
        "environment": environment(),
    }  # fmt: skip
    text = json.dumps(facts, default=repr).encode()
    digest = hashlib.sha256(text + b"".join(np.ascontiguousarray(x).tobytes() for x in arrays.values())).hexdigest()
    path = folder / f"outside-{digest[:8]}.npz"
    held = {name: x.astype(np.float64) if x.dtype.kind not in "fiu" else x for name, x in arrays.items()}
    with atomic_writer(path) as stream:
        np.savez_compressed(stream, facts=np.frombuffer(text, np.uint8), allow_pickle=False, **held)
    return path


@dataclass(frozen=True)
class Again:
    """`Again` says how a file's product came out when it was computed again with one instruction set."""

    instruction_set: str
    outside: str  #: Sentence on the elements outside of their bounds; empty if there are none.
    same_bits: bool  #: Whether the result has the same bits as that in the file.


def rerun(path: Path) -> tuple[dict, list[Again]]:
    """Read a file of :func:`write_outside` and compute its product again with every instruction set of this CPU.

    Raises ValueError or OSError if it is no such file, or if it names a method or engine that is unknown here.
    """
    facts, product, computed = _read(path)
    before, found = active_isa(), []
    try:
        for name in available_isas():
            set_isa(name)
            outside, values = "", computed
            try:
                values = _computed(product)
            except OutsideBound as error:
                outside, values = str(error), error.computed
            same = values.dtype == computed.dtype and values.tobytes() == computed.tobytes()
            found.append(Again(name, outside, same))
    finally:
        set_isa(before)
    return facts, found


def _read(path: Path) -> tuple[dict, JudgedProduct, np.ndarray]:
    names = array_names(path)
    if not {"a", "b", "computed", "facts"} <= set(names):
        raise ValueError(
            f"{path} holds the arrays {', '.join(map(str, names)) or 'none'}, expected a, b, computed and facts; give a file "
            "that was written for a result outside its bound"
        )
    try:
        facts = json.loads(read_array(path, "facts").tobytes())
        version, recipe = facts["version"], facts["recipe"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: the array 'facts' is damaged ({type(error).__name__}: {error}), expected JSON with the fields version "
            "and recipe; write the file again"
        ) from None
    if version != VERSION:
        raise ValueError(
            f"{path} has version {version!r}, expected version {VERSION}; read the file with the version of the package that "
            "wrote it"
        )
    a, b, computed = (read_array(path, name) for name in ("a", "b", "computed"))
    c = read_array(path, "c") if "c" in names else None
    return facts, JudgedProduct(facts["product"], recipe, a, b, c), computed


def _computed(product: JudgedProduct) -> np.ndarray:
    """Return the product of a recipe, after comparing it with its bound; raise OutsideBound if it is outside."""
    recipe, (a, b, c) = product.recipe, (product.a, product.b, product.c)
    if "method" in recipe:
        method = _method(recipe)
        operands = (a, b) if c is None else (a, b, c)
        options, multiplied = recipe.get("options", {}), {}
        if "low_low" in options:
            multiplied["low_low"] = options["low_low"]
        if "chain" in options:
            schedule = short_chains(recipe["order"], (len(a), a.shape[1], b.shape[1]), options["chain"])
            multiplied |= {"schedule": schedule, "blocking": None}
        found = method.multiply(*operands, **multiplied)
        method.hold(found, exact_gemm(*operands).error_of(found), Lines(a, 1), Lines(b, 0), c, **options)
        return np.asarray(found)
    if "promote_every" in recipe:
        measured = EngineProduct(plain_engine(recipe["engine"]), recipe["promote_every"], "rounded").measure(Data(a, b))
        hold(product, measured.computed, measured.error, measured.bound)
        return measured.computed
    if "engine_product" in recipe:
        return held_product(plain_engine(recipe["engine_product"]), a, b, c)
    if "chains" in recipe:
        return _kernel(product)
    asked = dict(recipe["options"])
    run = prepare(a, b, c, asked.pop("method"), recipe["recovered_gemm"], recipe["overflow"], asked)
    found = run.product()
    hold(product, found, exact_gemm(a, b, c).error_of(found), quick_run_bound(run))
    return found


def _kernel(product: JudgedProduct) -> np.ndarray:
    """Return the result of a correct kernel in some order of chains; scales are not computed again."""
    engine, options = plain_engine(product.recipe["engine"]), product.recipe["chains"]
    order = kernel_order(engine, product.a.shape[1], 1, options.get("k_order"), options.get("promote_every"), None)
    c = None if product.c is None else product.c.astype(np.float64)
    found = model_results(engine, product.a, product.b, c, None, options)[-1]
    used = used_operands(engine, product.a, product.b, None)
    bound = KernelBound(engine, used, c, None, order, engine.formats[3], running=False).bound(False)
    hold(product, found, exact_gemm(product.a, product.b, c).error_of(found), bound)
    return found


def _method(recipe: Mapping) -> GemmMethod:
    """Return the experiment's method that a recipe names."""
    name = recipe["method"]
    if not recipe.get("step_order"):
        return build_methods([name])[0]
    options = CubeOptions(
        (recipe.get("order", "termwise"),), (recipe.get("scale_exponent", 12),), (recipe["step_order"],),
        None if recipe.get("blocking") is None else tuple(recipe["blocking"]),
    )  # fmt: skip
    known = {method.name: method for method in build_methods(list(NAMED_METHODS), options)}
    if name not in known:
        raise ValueError(f"unknown method {name!r}; known: {', '.join(known)}")
    return known[name]
