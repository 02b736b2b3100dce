"""A second reader of PTX: one thread after the other in plain Python integers, for the opcodes of tests/vectors/ptx.

Nothing here comes from tensorcore_models.compiled. A thread is a generator that yields when it needs others: ("warp", ...) or
("block",) or ("spin",). Matrix products run in the plain-integer reference.
"""

import re
import struct
from fractions import Fraction

import numpy as np

import tensorcore_models as tcm
from tensorcore_models.formats.exact_rounding import encode_exact

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
GLOBAL = 1 << 44


def signed(x, bits):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def number(bits):
    """An fp32 encoding as a float (exact)."""
    return struct.unpack("<f", struct.pack("<I", bits & M32))[0]


def special(x):
    return x != x or x in (float("inf"), float("-inf"))


def rounded(exact, like_zero, fmt="fp32"):
    """Encoding of an exact fraction; an exact zero is `like_zero`."""
    return int(encode_exact(exact, tcm.get_format(fmt))) if exact else int(encode_exact(like_zero, tcm.get_format(fmt)))


def fma(a, b, c):
    x, y, z = number(a), number(b), number(c)
    if special(x) or special(y) or special(z):
        with np.errstate(all="ignore"):
            out = float(np.float32(np.float64(x) * y + z))
        return 0x7FFFFFFF if out != out else struct.unpack("<I", struct.pack("<f", out))[0]
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return rounded(exact, x * y + z if Fraction(x) * Fraction(y) == 0 else 0.0)


def add(a, b):
    x, y = number(a), number(b)
    if special(x) or special(y):
        out = x + y
        return 0x7FFFFFFF if out != out else struct.unpack("<I", struct.pack("<f", out))[0]
    return rounded(Fraction(x) + Fraction(y), x + y)


def convert(bits, fmt, rounding="rne"):
    """fp32 to a format."""
    x = number(bits)
    if x != x:
        return 0x7FFF
    return int(tcm.encode(np.float32(x), fmt, rounding))


class Block:
    """One thread block: shared memory, tensor memory, barriers."""

    def __init__(self, program, index):
        self.program, self.index = program, index
        self.shared, self.tensor, self.columns = bytearray(240 << 10), {}, 0
        self.phases, self.counts = {}, {}


class ScalarProgram:
    """The entry of a text whose only kernel it is."""

    def __init__(self, text, unit, base=1024):
        text = re.sub(r"//[^\n]*", "", text)
        self.unit, self.base = unit, base
        self.parameters = [(m[2], m[1], int(m[3] or 0)) for m in re.finditer(
            r"\.param(?: \.align \d+)? \.(\w+)(?: \.ptr \.global \.align \d+)? (\w+)(?:\[(\d+)\])?", text)]  # fmt: skip
        self.threads = int(re.search(r"\.reqntid (\d+)", text)[1])
        body = text[text.index("{", text.index(".reqntid")) + 1 :]
        self.code, self.labels, scope = [], {}, 0
        for part in re.findall(
            r"[\w$]+:|\{(?=\s*\.reg)|\}(?=\s*(?:[@\w$.]|\}|$))|[^;{}:]*(?:::[^;{}:]*)*(?:\{[^;]*\}[^;]*)*;", body
        ):
            part = " ".join(part.split())
            if part == "{":
                scope += 1
            elif part.endswith(":"):
                self.labels[part[:-1]] = self.labels.get(part[:-1], []) + [len(self.code)]
            elif part and part[0] not in "};." and not part.startswith(".reg"):
                guard = re.match(r"@(!?)(%?\w+) (.*)", part)
                rest = guard[3] if guard else part
                opcode, _, operands = rest.rstrip(" ;").partition(" ")
                self.code.append((opcode, self.split(operands), (guard[2], guard[1] == "!") if guard else None))

    @staticmethod
    def split(text):
        """Operands, vectors and addresses as they are."""
        found, depth, start = [], 0, 0
        for at, mark in enumerate(text + ","):
            depth += (mark in "[{") - (mark in "]}")
            if mark == "," and depth == 0:
                found.append(text[start:at].strip())
                start = at + 1
        return [f for f in found if f]

    def run(self, arguments, grid):
        """Arrays are changed in place; integers and floats are parameters, (array, box, swizzle) tensor maps."""
        self.arrays, self.values, self.maps = {}, {}, {}
        for i, ((name, _, _), argument) in enumerate(zip(self.parameters, arguments, strict=False)):
            address = GLOBAL + (i << 32)
            if isinstance(argument, np.ndarray):
                self.arrays[i], self.values[name] = argument.reshape(-1).view(np.uint8), address
            elif isinstance(argument, tuple):
                self.arrays[i], self.maps[name] = argument[0].reshape(-1).view(np.uint8), (address, *argument)
            elif isinstance(argument, float):
                self.values[name] = struct.unpack("<I", struct.pack("<f", argument))[0]
            else:
                self.values[name] = int(argument)
        for z in range(grid[2] if len(grid) > 2 else 1):
            for y in range(grid[1] if len(grid) > 1 else 1):
                for x in range(grid[0]):
                    self.block(Block(self, (x, y, z)))

    def block(self, block):
        """All threads of a block until they are done."""
        threads = {t: Thread(self, block, t) for t in range(self.threads)}
        waiting, running = {}, {t: thread.run() for t, thread in threads.items()}
        answers = dict.fromkeys(running)
        while running:
            for t in [t for t in running if t not in waiting]:
                try:
                    waiting[t] = running[t].send(answers.pop(t, None))
                except StopIteration:
                    del running[t]
                    waiting.pop(t, None)
            kinds = {t: w[0] for t, w in waiting.items()}
            if running and all(kinds.get(t) in ("block", "spin") for t in running) and "block" in kinds.values():
                for t in [t for t in running if kinds[t] == "block"]:
                    if all(kinds[u] == "block" for u in running):
                        del waiting[t]
            for warp in range(0, self.threads, 32):
                lanes = [t for t in range(warp, warp + 32) if t in running]
                if lanes and all(kinds.get(t) == "warp" for t in lanes):
                    assert len({waiting[t][1] for t in lanes}) == 1
                    for t, answer in zip(
                        lanes, waiting[lanes[0]][2]([waiting[t][3] for t in lanes], lanes), strict=True
                    ):
                        answers[t] = answer
                        del waiting[t]
            for group in range(0, self.threads, 128):
                lanes = range(group, group + 128)
                if all(kinds.get(t) == "group" for t in lanes):
                    for t, answer in zip(lanes, waiting[group][2]([waiting[t][3] for t in lanes], lanes), strict=True):
                        answers[t] = answer
                        del waiting[t]
            for t in [t for t, w in waiting.items() if w[0] == "spin"]:
                del waiting[t]

    # -- memory --------------------------------------------------------------------------------------------------------------
    def load(self, address, size):
        i, at = (address - GLOBAL) >> 32, (address - GLOBAL) & M32
        assert at + size <= len(self.arrays[i]), "out of bounds"
        return bytes(self.arrays[i][at : at + size])

    def store(self, address, data):
        i, at = (address - GLOBAL) >> 32, (address - GLOBAL) & M32
        assert at + len(data) <= len(self.arrays[i]), "out of bounds"
        self.arrays[i][at : at + len(data)] = np.frombuffer(data, np.uint8)


def swizzle(address, width):
    for bit in range({0: 0, 32: 1, 64: 2, 128: 3}[width]):
        address ^= (address >> (7 + bit) & 1) << (4 + bit)
    return address


def tile(block, word, width, rows, k, size, turned):
    """Elements (rows, k) that a matrix descriptor names, as CUTLASS states the canonical layouts."""
    start, lead, stride = (16 * (word >> s & 0x3FFF) for s in (0, 16, 32))
    line, out = width or 16, np.zeros((rows, k), f"u{size}")
    for r in range(rows):
        for j in range(k):
            if not turned:
                unit, byte = divmod(j * size, line)
                at = (r % 8) * line + (r // 8) * stride + byte + unit * lead
            elif width:
                unit, byte = divmod(r * size, line)
                at = byte + unit * lead + (j % 8) * line + (j // 8) * stride
            else:
                unit, byte = divmod(r * size, 16)
                at = byte + unit * stride + (j % 8) * 16 + (j // 8) * lead
            at = swizzle(start + at, width)
            out[r, j] = int.from_bytes(block.shared[at : at + size], "little")
    return out


class Thread:
    """One thread: registers as Python integers."""

    def __init__(self, program, block, number):
        self.program, self.block, self.t = program, block, number
        self.registers = {"%tid.x": number, **{f"%ctaid.{a}": block.index[i] for i, a in enumerate("xyz")}}

    def value(self, text):
        if text in self.registers:
            return self.registers[text]
        if text.startswith("!"):
            return 1 - self.value(text[1:])
        if text.startswith(("0f", "0d")):
            return int(text[2:], 16)
        if text == "global_smem":
            return self.program.base
        if text.endswith(tuple(name for name, _, _ in self.program.parameters)) and not text.startswith("%"):
            return next(i for i, row in enumerate(self.program.parameters) if row[0] == text)
        return int(text.rstrip("U"), 0)

    def address(self, text):
        inside = text.strip("[] ").split("+")
        return sum(self.value(part.strip()) for part in inside)

    def many(self, text):
        return [x.strip() for x in text.strip("{} ").split(",")]

    def run(self):
        pc, code = 0, self.program.code
        while pc < len(code):
            opcode, operands, guard = code[pc]
            taken = guard is None or bool(self.registers[guard[0]]) != guard[1]
            pc += 1
            words = opcode.split(".")
            if not taken and opcode not in ("elect.sync",):
                continue
            if words[0] == "bra":
                places = self.program.labels[operands[0]]
                pc = max([p for p in places if p < pc], default=places[0]) if operands[0] == "waitLoop" else places[0]
            elif words[0] == "ret":
                return
            elif words[0] in ("bar", "barrier"):
                yield ("block",)
            elif words[:2] == ["mbarrier", "try_wait"]:
                done = self.block.phases[self.address(operands[1])] % 2 != self.value(operands[2])
                self.registers[operands[0]] = int(done)
                if not done:
                    yield ("spin",)
            elif found := COLLECTIVE.get(words[0]):
                yield from found(self, words, operands)
            else:
                self.simple(words, operands)

    # -- what a thread does alone ----------------------------------------------------------------------------------------------
    def simple(self, w, o):
        kind = w[-1]
        bits = int(re.search(r"\d+", kind)[0]) if re.search(r"\d+", kind) else 1
        mask = (1 << bits) - 1
        name = w[0]
        if name in ("ld", "st", "cp", "mbarrier", "atom"):
            return getattr(self, name)(w, o, bits // 8)
        if name in ("fence", "tcgen05", "cvta") or (name == "wgmma" and w[1] != "mma_async"):
            if name == "cvta":
                self.registers[o[0]] = self.value(o[1])
            return None
        if name == "mov" and o[1].startswith("{"):
            parts = [self.value(x) for x in self.many(o[1])]
            self.registers[o[0]] = sum(p << (bits // len(parts) * i) for i, p in enumerate(parts))
            return None
        if name == "mov" and o[0].startswith("{"):
            parts, whole = self.many(o[0]), self.value(o[1])
            for i, p in enumerate(parts):
                self.registers[p] = whole >> (bits // len(parts) * i) & ((1 << bits // len(parts)) - 1)
            return None
        v = [self.value(x) for x in o[1:]]
        s = [signed(x, bits) for x in v] if kind[0] == "s" else [x & mask for x in v]
        if kind.startswith("f") and name in ("add", "sub", "mul", "fma", "div", "sqrt"):
            self.registers[o[0]] = self.floating(name, v)
            return None
        if name == "setp":
            self.registers[o[0]] = int(self.compare(w[1], kind, s, v))
            return None
        if name == "cvt":
            self.registers[o[0]] = self.cvt(w, v)
            return None
        wide = "wide" in w
        table = {
            "mov": lambda: -1 * (kind == "pred") * bool(v[0]) or v[0], "add": lambda: s[0] + s[1], "sub": lambda: s[0] - s[1],
            "mul": lambda: s[0] * s[1], "mad": lambda: s[0] * s[1] + v[2], "and": lambda: v[0] & v[1],
            "or": lambda: v[0] | v[1],
            "xor": lambda: v[0] ^ v[1], "neg": lambda: -s[0], "shl": lambda: v[0] << v[1] if v[1] < bits else 0,
            "shr": lambda: s[0] >> min(v[1], bits), "selp": lambda: v[0] if v[2] else v[1], "bfe": lambda: self.bfe(kind, v),
            "prmt": lambda: self.prmt(v),
        }  # fmt: skip
        result = table[name]()
        self.registers[o[0]] = int(bool(result)) if kind == "pred" else result & (M64 if wide else mask)
        return None

    @staticmethod
    def bfe(kind, v):
        field = (v[0] & M32) >> v[1] & ((1 << v[2]) - 1)
        return signed(field, v[2]) if kind[0] == "s" else field

    @staticmethod
    def prmt(v):
        data = (v[0] & M32).to_bytes(4, "little") + (v[1] & M32).to_bytes(4, "little")
        return sum(data[v[2] >> (4 * i) & 7] << (8 * i) for i in range(4))

    @staticmethod
    def floating(name, v):
        if name == "add":
            return add(v[0], v[1])
        if name == "sub":
            return add(v[0], v[1] ^ 1 << 31)
        if name == "mul":
            return fma(v[0], v[1], 1 << 31 if (v[0] ^ v[1]) >> 31 & 1 else 0)
        if name == "fma":
            return fma(*v)
        with np.errstate(all="ignore"):
            x = [np.float32(number(b)) for b in v]
            return int((x[0] / x[1] if name == "div" else np.sqrt(x[0])).view(np.uint32))

    @staticmethod
    def compare(how, kind, s, v):
        if kind[0] == "f":
            x, y = number(v[0]), number(v[1])
            if how == "num":
                return x == x and y == y
            s = [x, y]
        return {
            "lt": s[0] < s[1],
            "le": s[0] <= s[1],
            "gt": s[0] > s[1],
            "ge": s[0] >= s[1],
            "eq": s[0] == s[1],
            "ne": s[0] != s[1],
        }[how]

    @staticmethod
    def cvt(w, v):
        target, source = w[-2:]
        if target in ("bf16x2", "f16x2"):
            fmt = {"bf16x2": "bf16", "f16x2": "fp16"}[target]
            return convert(v[0], fmt) << 16 | convert(v[1], fmt)
        if source == "f32":
            if target == "tf32":
                return (v[0] + 0x1000) & 0xFFFFE000
            return convert(v[0], "bf16" if target == "bf16" else "fp16")
        if source == "bf16":
            return (v[0] & 0xFFFF) << 16
        if target == "f32":
            return rounded(Fraction(signed(v[0], 32)), 0.0)
        bits = int(source[1:])
        x = signed(v[0], bits) if source[0] == "s" else v[0] & ((1 << bits) - 1)
        return x & ((1 << int(target[1:])) - 1)

    def ld(self, w, o, size):
        targets = self.many(o[0])
        if "param" in w:
            name = o[1].strip("[] ")
            self.registers[o[0]] = self.program.values.get(name, 0)
            return
        address = self.address(o[1])
        for i, register in enumerate(targets):
            at = address + i * size
            data = self.block.shared[at : at + size] if "shared" in w else self.program.load(at, size)
            self.registers[register] = int.from_bytes(data, "little")

    def st(self, w, o, size):
        address = self.address(o[0])
        for i, source in enumerate(self.many(o[1])):
            data = (self.value(source) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
            at = address + i * size
            if "shared" in w:
                self.block.shared[at : at + size] = data
            else:
                self.program.store(at, data)

    def atom(self, w, o, size):
        address = self.address(o[1])
        old = int.from_bytes(self.program.load(address, size), "little")
        self.program.store(address, add(old, self.value(o[2])).to_bytes(4, "little"))
        self.registers[o[0]] = old

    def cp(self, w, o, size):
        if "bulk" in w:
            return self.bulk(w, o)
        if len(o) < 3:
            return None
        size, used = int(o[2], 0), self.value(o[3]) if len(o) > 3 else int(o[2], 0)
        at = self.address(o[0])
        data = self.program.load(self.address(o[1]), used) if used else b""
        self.block.shared[at : at + size] = data.ljust(size, b"\0")
        return None

    def bulk(self, w, o):
        if "tensor" not in w:
            return
        into = w.index("global") > w.index("shared::cta")
        described = (o[1] if into else o[0]).strip("[] ")
        base, coordinates = described.split(",", 1)
        x, y = (signed(self.value(c), 32) for c in self.many(coordinates))
        name = self.program.parameters[self.value(base.strip())][0]
        address, array, box, width = self.program.maps[name]
        size, goal = array.itemsize, self.address(o[0] if into else o[1])
        for i in range(box[0]):
            for j in range(box[1]):
                at = swizzle(goal + (i * box[1] + j) * size, width)
                inside = 0 <= y + i < array.shape[0] and 0 <= x + j < array.shape[1]
                place = address + ((y + i) * array.shape[1] + x + j) * size
                if into:
                    self.block.shared[at : at + size] = self.program.load(place, size) if inside else bytes(size)
                elif inside:
                    self.program.store(place, bytes(self.block.shared[at : at + size]))
        if into:
            self.arrive(self.address(o[2]), done=box[0] * box[1] * size)

    def mbarrier(self, w, o, size):
        if w[1] == "init":
            self.block.phases[self.address(o[0])] = 0
            self.block.counts[self.address(o[0])] = [1, 0]
        elif w[1] == "arrive":
            self.arrive(self.address(o[1]), count=1, expected=self.value(o[2]))

    def arrive(self, address, count=0, expected=0, done=0):
        state = self.block.counts[address]
        state[0] -= count
        state[1] += expected - done
        if state == [0, 0]:
            state[0] = 1
            self.block.phases[address] += 1

    # -- what threads do together ----------------------------------------------------------------------------------------------
    def elect(self, w, o):
        first, second = o[0].split("|")
        answer = yield ("warp", "elect", lambda given, lanes: [t == lanes[0] for t in lanes], None)
        self.registers[first], self.registers[second] = 0, int(answer)

    def shfl(self, w, o):
        by, bfly = self.value(o[2]), "bfly" in w

        def exchange(given, lanes):
            return [given[(t % 32) ^ by if bfly else by] for t in lanes]

        self.registers[o[0]] = yield ("warp", f"shfl {o}", exchange, self.value(o[1]))

    def ldmatrix(self, w, o):
        registers, count, trans = self.many(o[0]), int(next(x[1:] for x in w if re.fullmatch(r"x\d", x))), "trans" in w
        shared = self.block.shared

        def give(addresses, lanes):
            out = []
            for t in range(32):
                mine = []
                for m in range(count):
                    rows = [shared[a : a + 16] for a in addresses[8 * m : 8 * m + 8]]
                    pairs = [(t // 4, t % 4 * 2 + i) for i in (0, 1)]
                    pairs = [(c, r) for r, c in pairs] if trans else pairs
                    words = [int.from_bytes(rows[r][2 * c : 2 * c + 2], "little") for r, c in pairs]
                    mine.append(words[0] | words[1] << 16)
                out.append(mine)
            return out

        for register, word in zip(registers, (yield ("warp", "ldmatrix", give, self.address(o[1]))), strict=True):
            self.registers[register] = word

    def stmatrix(self, w, o):
        shared, count = self.block.shared, int(next(x[1:] for x in w if re.fullmatch(r"x\d", x)))

        def take(given, lanes):
            for m in range(count):
                for t in range(32):
                    at = given[8 * m + t // 4][0] + t % 4 * 4
                    shared[at : at + 4] = given[t][1][m].to_bytes(4, "little")
            return [None] * 32

        yield ("warp", "stmatrix", take, (self.address(o[0]), [self.value(x) for x in self.many(o[1])]))

    def mma(self, w, o):
        shape = next(x for x in w if re.fullmatch(r"m\d+n\d+k\d+", x))
        m, n, k = map(int, re.findall(r"\d+", shape))
        row = tcm.get_instruction(self.program.unit, f"mma.{shape}.{'.'.join(w[-4:])}")
        per = 2 if k == 16 else 1

        def multiply(given, lanes):
            a, b, c = (
                np.zeros((m, k), row.formats[0].container),
                np.zeros((k, n), row.formats[1].container),
                np.zeros((m, n), np.uint32),
            )
            for t, (ra, rb, rc) in enumerate(given):
                group, member = t // 4, t % 4
                for i in range(len(ra) * per):  # the documents' formulas of fragments
                    register, part = divmod(i, per)
                    value = ra[register] >> (32 // per * part) & ((1 << 32 // per) - 1)
                    a[group + 8 * (register % 2), member * per + part + 4 * per * (register // 2)] = value
                for i in range(len(rb) * per):
                    register, part = divmod(i, per)
                    b[member * per + part + 4 * per * register, group] = rb[register] >> (32 // per * part) & (
                        (1 << 32 // per) - 1
                    )
                for i in range(4):
                    c[group + 8 * (i // 2), member * 2 + i % 2] = rc[i]
            d = tcm.reference.mma_bits(row, a, b, c)
            return [[int(d[t // 4 + 8 * (i // 2), t % 4 * 2 + i % 2]) for i in range(4)] for t in range(32)]

        mine = [[self.value(x) for x in self.many(part)] for part in o[1:]]
        for register, word in zip(self.many(o[0]), (yield ("warp", f"mma {o}", multiply, mine)), strict=True):
            self.registers[register] = word

    def wgmma(self, w, o):
        if w[1] != "mma_async":
            return
        m, n, k = map(int, re.findall(r"\d+", next(x for x in w if x.startswith("m64"))))
        row = tcm.get_instruction(self.program.unit, f"wgmma.m64n8k{k}.{'.'.join(w[-3:])}").with_shape(m, n)
        registers, size, turned = self.many(o[0]), row.formats[0].bits // 8, [int(x) for x in o[6:]] or [0, 0]
        words = [self.value(x) for x in o[1:3]]
        block, keep = self.block, self.value(o[3])

        def multiply(given, lanes):
            width = {0: 0, 1: 128, 2: 64, 3: 32}
            a = tile(block, words[0], width[words[0] >> 62], m, k, size, turned[0])
            b = tile(block, words[1], width[words[1] >> 62], n, k, size, turned[1])
            c = np.zeros((m, n), np.uint32)
            spots = [
                [
                    (16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2), i // 4 * 8 + t % 4 * 2 + i % 2)
                    for i in range(len(registers))
                ]
                for t in range(128)
            ]
            if keep:
                for t, values in enumerate(given):
                    for spot, value in zip(spots[t], values, strict=True):
                        c[spot] = value
            d = tcm.reference.mma_bits(row, a, b.T.copy(), c)
            return [[int(d[spot]) for spot in spots[t]] for t in range(128)]

        mine = [self.registers.get(x, 0) for x in registers]
        for register, word in zip(registers, (yield ("group", "wgmma", multiply, mine)), strict=True):
            self.registers[register] = word

    def tcgen05(self, w, o):
        block = self.block
        if w[1] == "alloc":
            block.shared[self.address(o[0]) : self.address(o[0]) + 4] = (0).to_bytes(4, "little")
        elif w[1] == "commit":
            self.arrive(self.address(o[0]), count=1)
        elif w[1] == "mma":
            word, kind = self.value(o[3]), w[-1].removeprefix("kind::")
            k = {"f16": 16, "tf32": 8, "f8f6f4": 32}[kind]
            name = {"f16": ["f16", "bf16"][word >> 7 & 7 if kind == "f16" else 0], "tf32": "tf32", "f8f6f4": "e4m3"}[
                kind
            ]
            m, n = (word >> 24 & 31) * 16, (word >> 17 & 63) * 8
            row = tcm.get_instruction(self.program.unit, f"tcgen05.mma.m64n8k{k}.f32.{name}.{name}").with_shape(m, n)
            width, size = {0: 0, 2: 128, 4: 64, 6: 32}, row.formats[0].bits // 8
            da, db = self.value(o[1]), self.value(o[2])
            a = tile(block, da, width[da >> 61], m, k, size, word >> 15 & 1)
            b = tile(block, db, width[db >> 61], n, k, size, word >> 16 & 1)
            base, c = self.address(o[0]), np.zeros((m, n), np.uint32)
            spots = {
                (i, j): ((base >> 16) + (i if m == 128 else i // 16 * 32 + i % 16), (base & 0xFFFF) + j)
                for i in range(m)
                for j in range(n)
            }
            if self.value(o[4]):
                for spot, cell in spots.items():
                    c[spot] = block.tensor[cell]
            d = tcm.reference.mma_bits(row, a, b.T.copy(), c)
            block.tensor |= {cell: int(d[spot]) for spot, cell in spots.items()}
        elif w[1] in ("ld", "st"):
            text = o[0] if w[1] == "st" else o[1]
            base, registers = self.address(text), self.many(o[-1] if w[1] == "st" else o[0])
            lane = self.t % 32
            shift = int(o[1 if w[1] == "st" else 2]) if "16x32bx2" in w else 0
            row, column = (base >> 16) + (lane % 16 if shift else lane), (base & 0xFFFF) + (shift if lane > 15 else 0)
            for i, register in enumerate(registers):
                if w[1] == "st":
                    block.tensor[row, column + i] = self.value(register)
                else:
                    self.registers[register] = block.tensor[row, column + i]
        return
        yield


COLLECTIVE = {
    name: getattr(Thread, name) for name in ("elect", "shfl", "ldmatrix", "stmatrix", "mma", "wgmma", "tcgen05")
}
