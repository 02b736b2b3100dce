"""This module reads sequences of FP32 and integer instructions as text, and runs them on kernels, integers or solver terms.

A text is a few assignments followed by one expression, in Python's syntax:

- numbers with a point, and `2.0 ** 24`, are FP32 values; integers are words (`0x3BBB989D` is the FP32 number with these bits);
- `*`, `+`, `-`, `/`, unary `-`, `fma(a, b, c)` and `square_root(a)` are FP32 operations, rounded to nearest even; `fma_rd`
  rounds down; `abs`, `sat` (clamps to [0, 1], NaN becomes +0) and `flush` (subnormal numbers become zeros) do not round;
- `<` and `>` compare FP32 numbers, `==` compares words; `x if condition else y` selects; `float_of(word)` is the nearest FP32
  number;
- `&`, `|`, `^`, `<<`, `>>` (by a constant), `word_add` and `word_sub` are operations on words;
- `large_turns` and `large_rest` are the two parts of an angle's reduction (:mod:`.angles`);
- `ex2`, `lg2`, `rcp`, `rsqrt`, `sqrt`, `sin`, `cos` and `tanh` are operations of the special-function unit; `rcp_high` and
  `rsqrt_high` work on the upper word of an FP64 number.
"""

import ast
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._kernels.functions.functions import Sequence
from . import angles, datapath
from .tables import UNITS, kernel_tables

#: Number of operands of each operation, in the order of sequences.h, where the unit's operations come first.
OPERATIONS = {
    **dict.fromkeys(UNITS, 1),
    "fma": 3, "fma_rd": 3, "mul": 2, "add": 2, "div": 2, "square_root": 1, "neg": 1, "abs": 1, "sat": 1, "flush": 1,
    "float_of": 1, "large_turns": 1, "large_rest": 1, "less": 2, "same": 2, "select": 3, "and": 2, "or": 2, "xor": 2, "shl": 2,
    "shr": 2, "word_add": 2, "word_sub": 2,
}  # fmt: skip
_NUMBERS = {name: number for number, name in enumerate(OPERATIONS)}
_BINARY = {
    ast.Mult: "mul", ast.Add: "add", ast.Div: "div", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl",
    ast.RShift: "shr",
}  # fmt: skip
#: Number of registers of the kernel.
REGISTERS = 64


class SequenceStep(NamedTuple):
    """`SequenceStep` is one instruction; its sources are names of operands, numbers of earlier steps, or constants (word,)."""

    operation: str
    sources: tuple[Any, ...]


class InstructionSequence(NamedTuple):
    """`InstructionSequence` is a parsed text: names of operands, steps, and the source that is the result."""

    operands: tuple[str, ...]
    steps: tuple[SequenceStep, ...]
    result: Any


def word_of(value: float) -> int:
    """Return the bits of an FP32 number."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return bits


class _Reader:
    """`_Reader` parses one text; equal instructions become one step."""

    def __init__(self, operands: tuple[str, ...], text: str) -> None:
        self.text, self.steps = text, dict[SequenceStep, int]()
        self.names: dict[str, Any] = {name: name for name in operands}

    def step(self, operation: str, *sources: Any) -> int:
        if OPERATIONS.get(operation) != len(sources):
            raise ValueError(
                f"got {operation} with {len(sources)} operands in {self.text!r}, expected an operation of {OPERATIONS} with as "
                "many operands as the number there"
            )
        return self.steps.setdefault(SequenceStep(operation, sources), len(self.steps))

    def expression(self, node: ast.expr) -> Any:
        """Return the source of an expression, after adding the steps that compute it."""
        match node:
            case ast.Constant(value=float(value)):
                return (word_of(value),)
            case ast.Constant(value=int(value)):
                return (value & 0xFFFFFFFF,)
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.BinOp(left=ast.Constant(value=base), op=ast.Pow(), right=power):
                return (word_of(base ** ast.literal_eval(power)),)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.step("add", self.expression(left), self.negated(right))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self.step(_BINARY[type(op)], self.expression(left), self.expression(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.negated(operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                sources = [self.expression(left), self.expression(right)]
                if isinstance(op, ast.Eq):
                    return self.step("same", *sources)
                return self.step("less", *(reversed(sources) if isinstance(op, ast.Gt) else sources))
            case ast.IfExp(test=test, body=body, orelse=other):
                return self.step("select", *map(self.expression, (test, body, other)))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.step(name, *map(self.expression, args))
        raise ValueError(
            f"{ast.unparse(node)} in {self.text!r} is not an expression of a sequence, expected a number, a name, arithmetic, "
            f"a comparison, x if test else y, or a call of {', '.join(OPERATIONS)}"
        )

    def negated(self, node: ast.expr) -> Any:
        """Return the source of a negated expression."""
        source = self.expression(node)
        return (source[0] ^ 0x80000000,) if isinstance(source, tuple) else self.step("neg", source)


@cache
def parse(text: str, operands: tuple[str, ...] = ("x",)) -> InstructionSequence:
    """Parse the text of a sequence.

    Raises
    ------
    ValueError
        If the text is not of the form that the module describes.
    """
    reader = _Reader(operands, text)
    *assignments, last = ast.parse("\n".join(line.strip() for line in text.strip().splitlines())).body
    for node in assignments:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            raise ValueError(f"{ast.unparse(node)} in {text!r} is not an assignment, expected name = expression")
        reader.names[node.targets[0].id] = reader.expression(node.value)
    if not isinstance(last, ast.Expr):
        raise ValueError(f"got {text!r}, which must end in an expression, the result, not in an assignment")
    result = reader.expression(last.value)
    return InstructionSequence(operands, tuple(reader.steps), result)


# -- integers and terms --------------------------------------------------------------------------------------------------
#: Each step in terms of the operations of on_integers and on_terms; constants are codes.
_MEANING: dict[str, Callable] = {
    "fma": lambda z, x, y, c: z.fma(x, y, c),
    "fma_rd": lambda z, x, y, c: z.fma(x, y, c, "rd"),
    "mul": lambda z, x, y: z.mul(x, y),
    "add": lambda z, x, y: z.add(x, y),
    "div": lambda z, x, y: z.div(x, y),
    "square_root": lambda z, x: z.square_root(x),
    "neg": lambda z, x: z.word_xor(x, z.code(0x80000000, 32)),
    "abs": lambda z, x: z.word_and(x, z.code(0x7FFFFFFF, 32)),
    "sat": lambda z, x: _saturated(z, x),
    "flush": lambda z, x: _flushed(z, x),
    "float_of": lambda z, x: z.from_integer(x),
    "large_turns": lambda z, x: angles.reduced(z, x).turns,
    "large_rest": lambda z, x: angles.reduced(z, x).rest,
    "less": lambda z, x, y: z.below(x, y),
    "same": lambda z, x, y: z.same_codes(x, y),
    "select": lambda z, test, x, y: z.choose(test, x, y),
    "and": lambda z, x, y: z.word_and(x, y),
    "or": lambda z, x, y: z.word_or(x, y),
    "xor": lambda z, x, y: z.word_xor(x, y),
    "word_add": lambda z, x, y: z.word_add(x, y),
    "word_sub": lambda z, x, y: z.word_sub(x, y),
}


def _saturated(z, x):
    one = z.code(0x3F800000, 32)
    positive = z.choose(z.below(one, x), one, x)
    return z.choose(z.below(z.code(0, 32), x), positive, z.code(0, 32))


def _flushed(z, x):
    zero = z.same(z.bits(x, 30, 23), z.number(0))
    return z.choose(zero, z.word_and(x, z.code(0x80000000, 32)), x)


def values(z, program: InstructionSequence, operands) -> dict[Any, Any]:
    """Return the values of all operands by name, and of all steps by number, computed with the operations `z`.

    `z` is :mod:`.on_integers` or :mod:`.on_terms`.
    """
    known: dict[Any, Any] = dict(zip(program.operands, operands, strict=True))
    for number, (operation, sources) in enumerate(program.steps):
        given = [z.code(source[0], 32) if isinstance(source, tuple) else known[source] for source in sources]
        if operation in UNITS:
            known[number] = datapath.steps(z, operation, given[0]).code
        elif operation in ("shl", "shr"):
            known[number] = (z.shift_left if operation == "shl" else z.shift_right)(given[0], sources[1][0])
        else:
            known[number] = _MEANING[operation](z, *given)
    return known


def evaluate(z, program: InstructionSequence, operands) -> Any:
    """Return the result of a program for the given operands, computed with the operations `z`."""
    known = values(z, program, operands)
    return z.code(program.result[0], 32) if isinstance(program.result, tuple) else known[program.result]


# -- the kernel ----------------------------------------------------------------------------------------------------------
class KernelSequence(NamedTuple):
    """`KernelSequence` is a program in the form that the kernel takes.

    Parameters
    ----------
    steps : list of list of int
        Operation, target register and three source registers of each step. Registers hold operands, constants and results.
    constants : list of int
        Words of the constants.
    result : int
        Register of the result.
    """

    steps: list[list[int]]
    constants: list[int]
    result: int


def allocated(program: InstructionSequence) -> KernelSequence:
    """Assign registers to a program; a register is reused after the last step that reads it.

    Raises
    ------
    ValueError
        If the program needs more registers than the kernel has.
    """
    constants = list(dict.fromkeys(s for step in program.steps for s in step.sources if isinstance(s, tuple)))
    registers: dict[Any, int] = {source: at for at, source in enumerate([*program.operands, *constants])}
    fixed = len(registers)
    last = {source: number for number, step in enumerate(program.steps) for source in step.sources}
    steps, free, used = [], list[int](), fixed
    for number, (operation, sources) in enumerate(program.steps):
        if free:
            target = free.pop()
        else:
            target, used = used, used + 1
        read = [registers[source] for source in sources]
        steps.append([_NUMBERS[operation], target, *(read + [read[0]] * (3 - len(read)))])
        registers[number] = target
        done = {s for s in sources if isinstance(s, int) and last[s] == number and s != program.result}
        free += [registers[s] for s in done]
    if used > REGISTERS:
        raise ValueError(
            f"a sequence of {len(steps)} steps needs {used} registers, expected at most {REGISTERS}: shorten the sequence"
        )
    return KernelSequence(steps, [value for (value,) in constants], registers[program.result])


@cache
def compiled(program: InstructionSequence) -> Sequence:
    """Return the program and the unit's tables as the kernel's compiled sequence."""
    steps, constants, result = allocated(program)
    values, (coefficients, units) = np.array(constants, np.uint32), kernel_tables()
    return Sequence(np.array(steps, np.int32), values, len(program.operands), result, coefficients, units)
