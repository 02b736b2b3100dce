"""Moves of bits in plain Python: a register of one thread is a list of bits, lowest first; None is one that nobody wrote.

The twin of tensorcore_models.compiled.ptx.unwritten: nothing here comes from there.
"""

from itertools import product


def function_of(rule, operands):
    """Bit by bit: what the rule gives for every way to fill what nobody wrote; None where ways differ."""
    found = []
    for bits in zip(*operands, strict=True):
        ways = {rule(*each) for each in product(*[(0, 1) if bit is None else (bit,) for bit in bits])}
        found.append(ways.pop() if len(ways) == 1 else None)
    return found


def shifted(bits, step, fill=0):
    """Towards higher places by a number of places, towards lower ones if it is negative."""
    size = len(bits)
    return [bits[i - step] if 0 <= i - step < size else fill for i in range(size)]


def permuted(low, high, selector):
    """prmt."""
    both, out = low + high, []
    for place in range(4):
        nibble = selector >> 4 * place & 15
        byte = both[8 * (nibble & 7) : 8 * (nibble & 7) + 8]
        out += [byte[7]] * 8 if nibble & 8 else byte
    return out


def field(bits, place, length, signed):
    """bfe, with place + length within the register and length above 0."""
    part = bits[place : place + length]
    return part + [part[-1] if signed else 0] * (32 - length)


def inserted(bits, into, place, length):
    """bfi, with place + length within the register."""
    return into[:place] + bits[:length] + into[place + length :]
