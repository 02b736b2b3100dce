"""This module writes a plan as a PTO kernel: constants of the schedule before the bodies in `bodies/`, host, CMake, record.

Operands of one term lie in ND rows or in NZ fractals. Several terms take three kernels on one stream: vector units
split A and B into words, the cubes multiply, and vector units combine terms and slices. Words lie in ND rows.
:func:`check_pto` refuses a schedule that PTO cannot express.
"""

from importlib import resources
from typing import Any

from ascend.blocking import ACCUMULATOR_BYTES, Blocking, fractals
from ascend.dialects import check_dialect
from ascend.grid import Grid, Swizzle
from ascend.kernels.base import Kernel
from ascend.kernels.grid import GridKernel
from ascend.pipes.simulate import simulate
from ascend.schedule import build_schedule
from ascend.term_modes import TERMS
from ascend.tiling.rules import whole_k

#: C++ types of operands, and of their sums.
WORDS = {"fp16": "half", "bf16": "bfloat16_t", "fp32": "float", "int8": "int8_t"}
SUMS = {"int8": "int32_t"}
#: Vector cores beside each cube, and elements of a line in UB (two buffers, each with four lines of FP32).
VECTOR_CORES, CHUNK = 2, 4096


def check_pto(s: Kernel) -> None:
    """Raise ValueError if the emitted PTO kernel cannot express the schedule.

    The message names the option and an alternative.
    """
    check_dialect("pto", s.placed_on)
    if not isinstance(s, GridKernel) or s.resident != "none":
        kind = f"has the placement {s.placement()!r}" if s.on_cube else "uses the vector units"
        raise ValueError(
            f"the PTO kernel streams both operands to the cube, but this plan {kind}: plan with --for pto, or resident='none'"
        )
    if s.swizzle.adaptive:
        raise ValueError(
            f"the PTO kernel computes whole tiles, but the tile order {s.swizzle} cuts the last tiles into parts: take an "
            "order that is not adaptive"
        )
    if s.operand not in WORDS:
        raise ValueError(
            f"the PTO kernel multiplies {', '.join(WORDS)}, got {s.operand}: use --tiling, which prints blocks and buffers"
        )
    if s.dequantize:
        raise ValueError(
            f"the PTO kernel writes the int32 sums without scaling them, got --dequantize {s.dequantize}: leave it out, or use "
            "--emit ascendc, which scales the sums"
        )
    if s.terms > 1 and s.mode not in ("termwise", "fused"):
        raise ValueError(
            f"got mode {s.mode}, but the cube can neither scale a term by 2^-s_b before it adds the term nor alternate between "
            f"terms inside a block: use --mode termwise or fused"
        )
    if s.layout != "nt" and s.terms == 1 and s.operand in ("int8", "fp32"):
        raise ValueError(
            f"got {s.operand} operands with --layout {s.layout}, but the path from L1 to L0B transposes only 16-bit "
            f"elements: use --layout nt (B has N rows of K elements)"
        )
    if s.merge == "atomic" and len(s.k_slices) > 1 and s.groups > 1:
        raise ValueError(
            "got --merge atomic, but FIXPIPE can add a slice of k to C only if L0C holds the slice as one sum, and this plan "
            f"has {s.groups} sums for each slice: use --merge reduce"
        )
    if s.reseed_l0c or s.blocking.bk % whole_k(s.operand):
        raise ValueError(
            f"in the PTO kernel bk must be a multiple of {whole_k(s.operand)} and reseed_l0c must be False, got bk = "
            f"{s.blocking.bk} and reseed_l0c = {s.reseed_l0c}"
        )


def b_is_transposed(s: Kernel) -> bool:
    """Return whether B lies as N x K rows."""
    return s.layout == "nt" and s.terms == 1


def in_fractals(s: Kernel) -> bool:
    """Return whether A and B lie in NZ fractals; words of several terms lie in ND rows."""
    return s.layout == "nz" and s.terms == 1


def shapes_in_memory(s: Kernel) -> dict[str, tuple[int, int]]:
    """Return the rows and columns of "a" and "b" (k x n) in memory; in NZ they are whole fractals."""
    shapes = {"a": (s.m, s.k), "b": (s.k, s.n)}
    if not in_fractals(s):
        return shapes
    return {
        name: (fractals(rows) * 16, fractals(columns, whole_k(s.operand)) * whole_k(s.operand))
        for name, (rows, columns) in shapes.items()
    }


def copies_of_c(s: Kernel) -> int:
    """Return the number of copies of C that the cubes write for a later pass to add; 1 is C itself."""
    return s.terms * (len(s.k_slices) if s.merge == "reduce" else 1)


def _l1_bytes(s: Kernel) -> tuple[int, int]:
    b, size = s.blocking, s.format.bits // 8
    return size * b.bm * s.load_k, size * s.load_k * b.bn


def constants(s: GridKernel, scale_exponent: int) -> dict[str, Any]:
    """Return the constants of a plan that the bodies read as name -> value; a list becomes an array."""
    b, slices = s.blocking, len(s.k_slices)
    shapes, (a_bytes, b_bytes) = shapes_in_memory(s), _l1_bytes(s)
    slots, first = s.stream_slots, [terms[0] for terms in s.passes]
    row_groups, column_groups = s.rectangle_groups if s.owns_rectangles else (1, 1)
    return {
        "kM": s.m, "kK": s.k, "kN": s.n, "kBlockM": b.bm, "kBlockK": b.bk, "kBlockN": b.bn, "kLoadK": s.load_k,
        "kRowBlocks": len(s.row_blocks), "kColumnBlocks": len(s.column_blocks), "kSlices": slices,
        "kChain": b.bk * s.n_fused, "kCores": s.cores, "kUsedCores": s.used_cores, "kBalanced": s.balanced,
        "kRectangles": s.owns_rectangles, "kGroupsM": row_groups, "kGroupsN": column_groups,
        "kFirst": 0 if s.owns_rectangles else s.first_tile, "kOffset": s.swizzle.offset, "kDirection": s.swizzle.direction,
        "kRowsA": shapes["a"][0], "kColumnsA": shapes["a"][1], "kRowsB": shapes["b"][0], "kColumnsB": shapes["b"][1],
        "kInFractals": in_fractals(s), "kTurns": s.swizzle.turns, "kBTransposed": b_is_transposed(s), "kUnitFlag": s.unit_flag,
        "kTerms": s.terms, "kPasses": len(s.passes), "kAccumulators": s.accumulators, "kWords": s.words,
        "kWordA": ["hl".index(term[0]) for term in first], "kWordB": ["hl".index(term[1]) for term in first],
        "kTermOfPass": [TERMS.index(term) for term in first],
        "kCopies": copies_of_c(s), "kSlicesApart": s.merge == "reduce" and slices > 1,
        "kAddsSlices": s.merge == "atomic" and slices > 1,
        "kSlots": slots, "kL0Slots": s.l0_slots, "kL0CSlots": s.l0c_slots,
        "kL1ABytes": a_bytes, "kL1BBytes": b_bytes, "kL1A": 0, "kL1B": s.words * slots * a_bytes,
        "kL0ABytes": b.bm * b.bk * s.operand_bytes, "kL0BBytes": b.bk * b.bn * s.operand_bytes,
        "kL0CBytes": b.bm * b.bn * ACCUMULATOR_BYTES,
        "kVectorCores": VECTOR_CORES * s.cores, "kChunk": CHUNK,
        "kScale": f"{2.0**scale_exponent!r}f", "kUnscale": f"{2.0**-scale_exponent!r}f",
    }  # fmt: skip


def _declared(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"constexpr bool {name} = {str(value).lower()};"
    if isinstance(value, list):
        return f"constexpr uint32_t {name}[] = {{{', '.join(map(str, value))}}};"
    return f"constexpr {'float' if isinstance(value, str) else 'uint32_t'} {name} = {value};"


def _plan_text(s: GridKernel, scale_exponent: int) -> str:
    lines = [f"using Word = {WORDS[s.operand]};", f"using Sum = {SUMS.get(s.operand, 'float')};"]
    lines += [_declared(name, value) for name, value in constants(s, scale_exponent).items()]
    return "namespace plan\n{\n" + "\n".join(lines) + "\n} // namespace plan\n"


def _block_text(s: Kernel) -> str:
    """Return the products of one k block, with each word's move to L0 before its first and its release after its last use."""
    fused = s.words > 1
    terms, lines = s.passes[0], []
    for number, term in enumerate(terms):
        places = []
        for side, word in zip("AB", term, strict=True):
            seen = [t["AB".index(side)] for t in terms[:number]]
            which = "hl".index(word)
            places.append(str(which) if fused else "at.l0Slot")
            if word not in seen:
                lines.append(f"move{side}(at, {which if fused else 0}, {places[-1]});")
                lines.append(f"await<PIPE_MTE1, PIPE_M>(kEvent{side} + {places[-1]});")
        lines.append(f"product(at, {number}, {places[0]}, {places[1]});")
        for side, word, place in zip("AB", term, places, strict=True):
            if word not in [t["AB".index(side)] for t in terms[number + 1 :]]:
                lines.append(f"raise<PIPE_M, PIPE_MTE1>(kEvent{side} + {place});")
    body = "\n".join(f"    {line}" for line in lines)
    return f"AICORE inline void multiplyBlock(const Block &at)\n{{\n{body}\n}}\n"


def body(name: str) -> str:
    """Return the text of a file in `bodies/`."""
    return resources.files("ascend.emit").joinpath("bodies", name).read_text(encoding="utf-8")


def host_body(name: str) -> str:
    """Return the text of a host program in `bodies/`, with the parts that hosts share."""
    return body(name).replace("//@acl\n", body("acl.cpp"))


def needs_vector_passes(s: Kernel) -> bool:
    """Return whether vector passes split words or combine copies of C."""
    return s.split_elements > 0 or copies_of_c(s) > 1


def record(s: GridKernel, scale_exponent: int = 12) -> dict[str, Any]:
    """Return what a caller of the kernel needs: sizes, workspace, places in L1 and L0, flags, launches, predicted time.

    Sizes are bytes, times microseconds. The predicted time is the plan's; words in ND rows and the launches of the
    vector kernels add to it.
    """
    all_constants = constants(s, scale_exponent)
    words = {} if s.terms == 1 else {x: 2 * s.operand_bytes * size for x, size in (("a", s.m * s.k), ("b", s.k * s.n))}
    copies = copies_of_c(s)
    rings = {"MTE1 to MTE2": s.stream_slots, "MTE2 to MTE1": s.stream_slots, "M to MTE1": 2 * s.l0_slots,
             "MTE1 to M": 2 * s.l0_slots}  # fmt: skip
    if not s.unit_flag:
        rings |= {"FIX to M": s.l0c_slots, "M to FIX": s.l0c_slots}
    return {
        "dialect": "pto", "chip": s.placed_on.name, "m": s.m, "k": s.k, "n": s.n, "operand": s.operand, "terms": s.terms,
        "mode": s.mode, "merge": s.merge, "scale_exponent": scale_exponent if s.terms > 1 else None,
        **_layouts(s), "presplit": s.presplit, "cores": s.used_cores, "placement": s.placement(), "schedule": _rebuilt_from(s),
        "clear_c": bool(all_constants["kAddsSlices"]),
        "workspace_bytes": {"words": words, "copies_of_c": (copies > 1) * copies * s.m * s.n * ACCUMULATOR_BYTES},
        "l1": {"a_offset": 0, "b_offset": all_constants["kL1B"], "a_bytes": all_constants["kL1ABytes"],
               "b_bytes": all_constants["kL1BBytes"], "slots": s.stream_slots, "words": s.words},
        "l0": {"a_bytes": all_constants["kL0ABytes"], "b_bytes": all_constants["kL0BBytes"], "slots": s.l0_slots,
               "c_bytes": all_constants["kL0CBytes"], "c_slots": s.l0c_slots, "accumulators": s.accumulators},
        "events": rings, "unit_flag": s.unit_flag,
        "launches": 1 + (s.split_elements > 0) * (2 - len(s.presplit)) + (copies > 1),
        "predicted_us": 1e6 * simulate(s).seconds,
        "predicted_for": "words in NZ, one launch" if s.terms > 1 else f"A and B in {s.layout.upper()}",
    }  # fmt: skip


def _layouts(s: Kernel) -> dict[str, str]:
    if not in_fractals(s):
        return {"layout_a": "ND, M x K", "layout_b": "ND, N x K" if b_is_transposed(s) else "ND, K x N"}
    shapes = shapes_in_memory(s)
    return {f"layout_{x}": "NZ, {} x {} with zeros beyond the matrix".format(*shapes[x]) for x in shapes}


def _rebuilt_from(s: GridKernel) -> dict[str, Any]:
    """Return the options of :func:`ascend.build_schedule` that give the schedule again, as plain data."""
    b = s.blocking
    return s.shared_options() | {
        "resident": s.resident, "n_fused": s.n_fused, "depth": s.depth, "balanced": s.balanced,
        "block": [b.bm, b.bk, b.bn], "cores": s.cores, "grid": [s.grid.m, s.grid.k, s.grid.n],
        "swizzle": [s.swizzle.offset, s.swizzle.direction, s.swizzle.turns],
    }  # fmt: skip


def schedule_of(record: dict[str, Any]) -> Kernel:
    """Return the schedule in a kernel's record."""
    own = dict(record["schedule"])
    block, swizzle, grid = Blocking(*own.pop("block")), Swizzle(*own.pop("swizzle")), Grid(*own.pop("grid"))
    return build_schedule(
        record["m"], record["k"], record["n"], record["chip"], block, kernel="grid", grid=grid, swizzle=swizzle, **own
    )  # fmt: skip


def pto_files(schedule: Kernel, scale_exponent: int = 12) -> dict[str, str | dict]:
    """Return the files of a plan's PTO kernel as name -> text, or data for JSON.

    Parameters
    ----------
    schedule : Kernel
        Schedule of the grid kernel on a chip with FIXPIPE, with no resident operand.
    scale_exponent : int
        s_b of the low words, at most 30.

    Raises
    ------
    ValueError
        If the kernel cannot express the schedule.
    """
    check_pto(schedule)
    assert isinstance(schedule, GridKernel)  # check_pto refuses other kernels
    if not 0 <= scale_exponent <= 30:
        raise ValueError(f"scale_exponent must lie between 0 and 30, got {scale_exponent}")
    plan = _plan_text(schedule, scale_exponent)
    files: dict[str, str | dict] = {
        "gemm_cube.cpp": body("cube.cpp").replace("//@plan\n", plan).replace("//@blocks\n", _block_text(schedule))
    }
    if needs_vector_passes(schedule):
        files["gemm_vector.cpp"] = body("vector.cpp").replace("//@plan\n", plan)
    files["main.cpp"] = _host_text(schedule)
    files["CMakeLists.txt"] = body("CMakeLists.txt")
    return files | {"record.json": record(schedule, scale_exponent)}


def _host_text(s: GridKernel) -> str:
    """Return the host program, without calls of kernels that the plan lacks."""
    names = ("kM", "kN", "kRowsA", "kColumnsA", "kRowsB", "kColumnsB", "kTerms", "kCopies", "kAddsSlices")
    splits = {f"kSplits{x.upper()}": s.terms > 1 and x not in s.presplit for x in "ab"}
    values = {name: constants(s, 0)[name] for name in names} | splits | {"kWordBytes": s.operand_bytes}
    plan = "\n".join(["namespace plan", "{", *(_declared(*each) for each in values.items()), "} // namespace plan", ""])
    plan = f"#define MPGEMM_VECTOR_PASSES {int(needs_vector_passes(s))}\n{plan}"
    return host_body("host.cpp").replace("//@plan\n", plan)
