"""This module joins the parts of projections that only one run has fused, so that both runs can be compared.

Serving stacks (vLLM, SGLang) multiply with one matrix where the model has several: the outputs stand side by side, and
the rows of the weights one below the other.
"""

from dataclasses import replace

from mpgemm.traces.reading import TensorPlace, Trace

#: Fused projections with their parts, in the order of their outputs (vLLM's and SGLang's models of Llama, Qwen, DeepSeek).
FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "fused_qkv_a_proj_with_mqa": ("q_a_proj", "kv_a_proj_with_mqa"),
}


def joined(first: Trace, second: Trace) -> tuple[Trace, Trace, tuple[str, ...]]:
    """Return both runs with parts joined that the other one has fused, and a description of the joined parts."""
    one, said_of_first = _joined_as(first, second)
    other, said_of_second = _joined_as(second, first)
    return one, other, (*said_of_first, *said_of_second)


def _joined_as(trace: Trace, other: Trace) -> tuple[Trace, list[str]]:
    """Return a run with the parts joined that the other run has fused."""
    modules, said = dict(trace.modules), []
    for step, module in other.modules:
        if (step, module) in trace.modules:
            continue
        stem, _, number = module.partition("#")
        head, dot, last = stem.rpartition(".")
        if last not in FUSED:
            continue
        names = [f"{head}{dot}{part}{'#' if number else ''}{number}" for part in FUSED[last]]
        if all((step, name) in modules for name in names):
            parts = [modules[step, name] for name in names]
            kinds = set.intersection(*(set(part) for part in parts))
            places = {kind: tuple(place for part in parts for place in _places(part[kind])) for kind in kinds}
            modules = _in_place(modules, [(step, name) for name in names], (step, module), places)
            said.append(f"{module} is {', '.join(FUSED[last])} of {trace.folder}")
    return replace(trace, modules=modules), said


def _places(place: TensorPlace | tuple[TensorPlace, ...]) -> tuple[TensorPlace, ...]:
    return (place,) if isinstance(place, TensorPlace) else place


def _in_place(modules: dict, parts: list[tuple[int, str]], key: tuple[int, str], places: dict) -> dict:
    """Return the modules without some of them, and with another one in place of the last of these."""
    last = [at for at in modules if at in parts][-1]
    found = {}
    for at, own in modules.items():
        if at == last:
            found[key] = places
        elif at not in parts:
            found[at] = own
    return found
