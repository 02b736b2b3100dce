"""This module prints a function's sequence of instructions as PTX, for kernels that compute the function inline."""

from functools import cache

from .sequences import InstructionSequence, SequenceStep

#: PTX text of each operation: d is the result, x, y and z are the sources; the first letter says whether constants are written
#: as floats (f) or as bits (b).
_PTX = {
    "ex2": "f ex2.approx.ftz.f32 {d}, {x};",
    "rcp": "f rcp.approx.ftz.f32 {d}, {x};",
    "fma": "f fma.rn.f32 {d}, {x}, {y}, {z};",
    "fma_rd": "f fma.rm.f32 {d}, {x}, {y}, {z};",
    "mul": "f mul.rn.f32 {d}, {x}, {y};",
    "add": "f add.rn.f32 {d}, {x}, {y};",
    "div": "f div.rn.f32 {d}, {x}, {y};",
    "sat": "f cvt.sat.f32.f32 {d}, {x};",
    "less": "f setp.lt.f32 {p}, {x}, {y};",
    "neg": "b xor.b32 {d}, {x}, 0x80000000;",
    "abs": "b and.b32 {d}, {x}, 0x7fffffff;",
    "and": "b and.b32 {d}, {x}, {y};",
    "or": "b or.b32 {d}, {x}, {y};",
    "xor": "b xor.b32 {d}, {x}, {y};",
    "shl": "b shl.b32 {d}, {x}, {y};",
    "shr": "b shr.u32 {d}, {x}, {y};",
    "word_add": "b add.u32 {d}, {x}, {y};",
    "word_sub": "b sub.u32 {d}, {x}, {y};",
    "select": "b selp.b32 {d}, {y}, {z}, {p};",
}


@cache
def ptx_text(program: InstructionSequence) -> str:
    """Return a sequence as one block of PTX, where $0 is the result and $1, $2, ... are the operands, of 32 bits each.

    Raises
    ------
    ValueError
        If PTX has no single instruction for an operation of the sequence.
    """
    names = {name: f"${number}" for number, name in enumerate(program.operands, 1)}
    lines = [f"{{ .reg .b32 t<{len(program.steps)}>; .reg .pred p<{len(program.steps)}>;"]
    lines += [_line(number, step, names) for number, step in enumerate(program.steps)]
    lines.append(f"mov.b32 $0, {_source(program.result, 'b', names)}; }}")
    return "\n".join(lines)


def _line(number: int, step: SequenceStep, names: dict[str, str]) -> str:
    if step.operation not in _PTX:
        raise ValueError(f"{step.operation} is not a single instruction in PTX, expected one of {', '.join(_PTX)}")
    kind, _, text = _PTX[step.operation].partition(" ")
    sources = [_source(source, kind, names) for source in step.sources]
    test = f"p{step.sources[0]}" if step.operation == "select" else f"p{number}"
    return text.format(d=f"t{number}", p=test, **dict(zip("xyz", sources, strict=False)))


def _source(source, kind: str, names: dict[str, str]) -> str:
    if isinstance(source, tuple):
        return f"0f{source[0]:08X}" if kind == "f" else f"0x{source[0]:08x}"
    return names[source] if isinstance(source, str) else f"t{source}"
