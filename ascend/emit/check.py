"""This module compiles PTO kernels with the shim, runs them on this machine, and checks bits, races, flags and tiles.

The shim (`shim/`) implements the calls that GEMM kernels use. Any C++17 compiler compiles a kernel against it. Cores
run one after the other, and every access to L1, L0A, L0B, L0C and UB is checked against the flags.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ascend.chips.chip import Chip
from ascend.emit.faults import EmittedCheck, PtoFault
from ascend.emit.pto import WORDS, copies_of_c, in_fractals, needs_vector_passes, schedule_of, shapes_in_memory
from ascend.kernels.base import Kernel
from ascend.slices import MOST_ORDERED_SLICES, atomic_results, atomic_spread, merge_slices
from tensorcore_models.results import Result

#: Time limit in seconds of a compilation, and of a run.
COMPILE_SECONDS, RUN_SECONDS = 300, 900
#: Exit status of the shim if a kernel cannot go on; the shim prints the reason first.
STOPPED = 3
SUMS = {"int8": np.int32}


class Matrix(NamedTuple):
    """`Matrix` is a matrix in global memory of a run: its C++ type, element count, content, and whether kernels write it."""

    name: str
    cpp_type: str
    elements: int
    values: np.ndarray | None = None
    written: bool = False
    filled: int = 0xFF


@dataclass(frozen=True)
class ShimRun:
    """`ShimRun` holds a run's faults, the result's bytes, and loads to L1 and stores from L0C in each core's order."""

    faults: list[PtoFault]
    result: bytes
    trace: list[dict] = field(repr=False, default_factory=list)


@dataclass(frozen=True, repr=False)
class PtoCheck(EmittedCheck, Result):
    """`PtoCheck` holds the faults found in a kernel, and the differences of its result from the reference.

    Attributes
    ----------
    name : str
        Name of the file.
    faults : tuple of PtoFault
        Faults; empty for a sound kernel.
    compared : str
        The reference that the result was compared with.
    elements, different : int
        Number of elements of C, and of elements whose bits differ.
    largest : float
        Largest absolute difference.
    """

    name: str
    faults: tuple[PtoFault, ...]
    compared: str
    elements: int
    different: int
    largest: float

    def to_dict(self) -> dict:
        """Return the content as plain data for JSON."""
        return {"file": self.name, "sound": self.sound, "compared": self.compared, "elements": self.elements,
                "different": self.different, "largest": self.largest, "faults": self.to_rows()}  # fmt: skip

    def sentences(self) -> list[str]:
        """Describe the comparison and the faults in sentences, the headline first."""
        same = f"the same bits as {self.compared}"
        if self.different:
            same = f"{self.different} differ from {self.compared}, by at most {self.largest:.3g}"
        first = f"{self.name}: {self.elements} elements of C, {same}"
        if self.sound:
            return [first, "no race in L1, L0A, L0B, L0C or UB, no flag left up"]
        return [first, *(f"{f.kind}{'' if f.core is None else f' (core {f.core})'}: {f.what}" for f in self.faults)]


def compiler() -> str:
    """Return the C++ compiler: $CXX, else c++, g++ or clang++. Raises ValueError if there is no compiler."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise ValueError(
        "checking a kernel needs a C++17 compiler, but no compiler was found: install g++ or clang++, or set CXX"
    )


def shim_calls() -> list[str]:
    """Return the names of the PTO calls that the shim implements."""
    text = resources.files("ascend.emit").joinpath("shim", "pto", "pto-inst.hpp").read_text(encoding="utf-8")
    return sorted(set(re.findall(r"(?:RecordEvent|void) (T[A-Z_]+)\(", text)))


def run_kernels(
    sources: Sequence[Path], main: str, matrices: Sequence[Matrix], chip: Chip, result: str, text_of: Callable | None = None,
    optimization: str = "-O1", included: bool = False,
) -> ShimRun:  # fmt: skip
    """Compile sources with a main function against the shim and run it.

    `main` is the body of the main function, which finds each matrix as a pointer of its name and `harness`; `text_of` changes
    a source's text before it is compiled. With `included` the main file includes the source itself.

    Raises ValueError if it does not compile, with the compiler's first lines, or if the kernel ends with an error.
    """
    with tempfile.TemporaryDirectory() as name, resources.as_file(resources.files("ascend.emit") / "shim") as shim:
        folder = Path(name)
        files = []
        for source in sources:
            text = source.read_text(encoding="utf-8")
            files.append(folder / source.name)
            files[-1].write_text(text_of(text) if text_of else text, encoding="utf-8")
        for m in matrices:
            if m.values is not None:
                (folder / f"{m.name}.bin").write_bytes(np.ascontiguousarray(m.values).tobytes())
        (folder / "mpgemm_main.cpp").write_text(_main_text(main, matrices, result), encoding="utf-8")
        program = folder / "kernel"
        includes = [f"-I{shim}", *(f"-I{source.parent.resolve()}" for source in sources[:1])]
        sizes = {
            "L1": chip.l1_bytes,
            "L0A": chip.l0a_bytes,
            "L0B": chip.l0b_bytes,
            "L0C": chip.l0c_bytes,
            "UB": chip.ub_bytes,
        }
        command = [
            compiler(), "-std=c++17", optimization, "-ffp-contract=off", "-w", *includes,
            *(f"-DMPGEMM_{buffer}_BYTES={size}" for buffer, size in sizes.items()),
            *map(str, [] if included else files), str(folder / "mpgemm_main.cpp"), "-o", str(program),
        ]  # fmt: skip
        built = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS)
        if built.returncode:
            errors = [line.replace(f"{folder}/", "") for line in built.stderr.splitlines() if "error" in line]
            unknown = " (the shim has " + ", ".join(shim_calls()) + ")" if "declared" in "".join(errors[:3]) else ""
            raise ValueError(
                f"{sources[0]} does not compile: " + "; ".join(errors[:3] or built.stderr.splitlines()[:3]) + unknown
            )
        done = subprocess.run([program, folder], capture_output=True, text=True, timeout=RUN_SECONDS)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        faults = [PtoFault(x["fault"], x["core"], x["what"]) for x in lines if "fault" in x]
        if done.returncode not in (0, STOPPED):
            raise ValueError(
                f"{sources[0]}: the kernel ended with status {done.returncode}: {done.stderr.strip()[:200]}"
            )
        if done.returncode == STOPPED:
            return ShimRun(faults, b"")
        trace = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
        return ShimRun(faults, (folder / "result.bin").read_bytes(), trace)


def _main_text(main: str, matrices: Sequence[Matrix], result: str) -> str:
    made = [
        f'    auto *{m.name} = harness.matrix<{m.cpp_type}>("{m.name}", {m.elements}u, {str(m.written).lower()}, {m.filled});'
        for m in matrices
    ]
    declared, _, called = main.rpartition("//@main\n")
    lines = [
        "#include <mpgemm/harness.hpp>", declared, "int main(int, char **arguments)", "{",
        "    mpgemm::Harness harness(arguments[1]);", *made, called, f'    return harness.finish("{result}");', "}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


# -- kernels that were written out here -------------------------------------------------------------------------------


def record_of(folder: Path) -> dict[str, Any]:
    """Return the record of a kernel that was written into a folder. Raises ValueError if there is none."""
    record_file = folder / "record.json"
    if not record_file.is_file():
        raise ValueError(f"{folder} holds no record.json: expected a folder that mpgemm plan --emit pto wrote")
    return json.loads(record_file.read_text(encoding="utf-8"))


def check_emitted(
    folder: str | Path, a: np.ndarray | None = None, b: np.ndarray | None = None, seed: int = 0, optimization: str = "-O1"
) -> PtoCheck:  # fmt: skip
    """Run the kernel that `plan --emit pto` wrote into a folder and compare it with the schedule in its record.

    The check compares its bits with :func:`ascend.cube_gemm`'s, reports its faults, and compares the tiles of C and
    slices of k of each core with the schedule's visits. `a` (m x k) and `b` (k x n) are normal elements of `seed` by
    default. `optimization` is the compiler's level.

    Raises
    ------
    ValueError
        If the folder holds no such kernel, or it does not compile.
    """
    folder = Path(folder)
    found = record_of(folder)
    if found.get("dialect") != "pto":
        raise ValueError(
            f"{folder / 'record.json'}: only PTO kernels can run here, got dialect {found.get('dialect')!r}: emit the plan "
            "with --emit pto"
        )
    s = schedule_of(found)
    if a is None or b is None:
        a, b = sample(s, seed)
    run = run_emitted(folder, s, found["scale_exponent"] or 0, a, b, optimization)
    faults = list(run.faults)
    if run.result:
        faults += tile_faults(s, run.trace)
    what = f"ascend.cube_gemm of the plan ({s.terms} term(s), {s.mode})"
    expected, allowed = s.product(a, b, arithmetic=_arithmetic(s, found["scale_exponent"])), None
    if s.merge == "atomic" and len(s.k_slices) > 1:
        expected, allowed = _in_some_order(s.slice_products(a, b), run.result)
        what += ", slices in order of the cores' arrival"
    return compared(str(folder), faults, run.result, expected, what, allowed)


def _in_some_order(partial: np.ndarray, result: bytes) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the sum of the slices in the order that matches the result, element by element, or with a bound on all orders."""
    merged = merge_slices(partial)
    if len(partial) > MOST_ORDERED_SLICES:
        return merged, atomic_spread(partial)
    got = np.frombuffer(result, merged.dtype)
    if not got.size:
        return merged, None
    for each in atomic_results(partial):
        merged = np.where(each == got.reshape(merged.shape), each, merged)
    return merged, None


def sample(s: Kernel, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return operands of a schedule: normal FP32 elements, or INT8 integers."""
    rng = np.random.default_rng(seed)
    if s.operand == "int8":
        return rng.integers(-128, 128, (s.m, s.k), np.int8), rng.integers(-128, 128, (s.k, s.n), np.int8)
    return rng.standard_normal((s.m, s.k)).astype("f4"), rng.standard_normal((s.k, s.n)).astype("f4")


def _arithmetic(s: Kernel, scale_exponent: int | None) -> Any:
    from ascend.numeric.fp16_products import CubeArithmetic

    return CubeArithmetic(scale_exponent=scale_exponent or 0) if s.terms > 1 else None


def compared(
    name: str, faults: list[PtoFault], result: bytes, expected: np.ndarray, what: str, allowed: np.ndarray | None = None
) -> PtoCheck:  # fmt: skip
    """Return the check of a result: equal bits, or `allowed` of each element if the kernel chooses the order of the sums."""
    got = np.frombuffer(result, expected.dtype)
    if not got.size:
        return PtoCheck(name, tuple(faults), what, expected.size, expected.size, float("nan"))
    got = got.reshape(expected.shape)
    different = int(np.count_nonzero(got.view(np.uint32) != np.ascontiguousarray(expected).view(np.uint32)))
    with np.errstate(invalid="ignore"):
        gap = np.nan_to_num(np.abs(got.astype(float) - expected.astype(float)), nan=np.inf)
    largest = float(gap.max(initial=0.0))
    if different and allowed is None:
        faults = [
            *faults,
            PtoFault("bits", None, f"{different} of {expected.size} elements differ, by at most {largest:.3g}"),
        ]
    if allowed is not None and (wrong := int(np.count_nonzero(gap > allowed))):
        text = f"{wrong} of {expected.size} elements differ by more than any order of the sums can, by at most {largest:.3g}"
        faults = [*faults, PtoFault("numbers", None, text)]
    return PtoCheck(name, tuple(faults), what, expected.size, different, largest)


def run_emitted(
    folder: Path, s: Kernel, scale_exponent: int, a: np.ndarray, b: np.ndarray, optimization: str = "-O1"
) -> ShimRun:  # fmt: skip
    """Return the run of an emitted kernel; the matrices are the schedule's operands."""
    word, total = WORDS[s.operand], "int32_t" if s.operand == "int8" else "float"
    mk, kn, mn, copies = s.m * s.k, s.k * s.n, s.m * s.n, copies_of_c(s)
    matrices, calls = [], []
    declared = "void gemm_cube(uint8_t *, uint8_t *, uint8_t *, uint8_t *, uint8_t *);\n"
    pointers = []
    for name, values, count in (("a", a, mk), ("b", b if s.layout != "nt" or s.terms > 1 else b.T, kn)):
        if s.terms == 1:
            own = elements_of(values, s.operand)
            if in_fractals(s):
                own = _fractals_of(own, *shapes_in_memory(s)[name])
            matrices.append(Matrix(name, word, own.size, own))
            pointers += [name, "nullptr"]
            continue
        words = _split(values, scale_exponent) if name in s.presplit else (None, None)
        if name not in s.presplit:
            matrices.append(Matrix(name, "float", count, values))
            calls.append(f"gemm_split((uint8_t *){name}, (uint8_t *){name}_high, (uint8_t *){name}_low, {count}u)")
        matrices += [
            Matrix(f"{name}_{part}", "half", count, own, own is None)
            for part, own in zip(("high", "low"), words, strict=True)
        ]
        pointers += [f"{name}_high", f"{name}_low"]
    filled = 0 if s.merge == "atomic" and len(s.k_slices) > 1 else 0xFF
    matrices.append(Matrix("c", total, mn, None, True, filled if copies == 1 else 0xFF))
    if copies > 1:
        matrices.append(Matrix("copies", total, copies * mn, None, True, filled))
    cube = ", ".join(f"(uint8_t *){pointer}" for pointer in [*pointers, "copies" if copies > 1 else "c"])
    vector_cores = 2 * s.cores
    steps = [(vector_cores, call) for call in calls] + [(s.used_cores, f"gemm_cube({cube})")]
    if copies > 1:
        steps.append((vector_cores, "gemm_combine((uint8_t *)copies, (uint8_t *)c)"))
    if needs_vector_passes(s):
        declared += (
            "void gemm_split(uint8_t *, uint8_t *, uint8_t *, uint64_t);\nvoid gemm_combine(uint8_t *, uint8_t *);\n"
        )
    body = "\n".join(
        f"    harness.run({cores}, [&] {{ {call}; }});\n    harness.next_kernel();" for cores, call in steps
    )
    sources = [folder / "gemm_cube.cpp"] + [folder / "gemm_vector.cpp"] * needs_vector_passes(s)
    return run_kernels(sources, f"{declared}//@main\n{body}", matrices, s.placed_on, "c", optimization=optimization)


def elements_of(x: np.ndarray, operand: str) -> np.ndarray:
    """Return the elements in the format that the cube reads."""
    if operand == "bf16":
        import ml_dtypes

        return np.ascontiguousarray(x).astype(ml_dtypes.bfloat16)
    return np.ascontiguousarray(x).astype({"fp16": np.float16, "fp32": np.float32, "int8": np.int8}[operand])


def _fractals_of(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return a matrix in NZ, padded with zeros to `rows` x `columns`: columns / C0, rows / 16, 16, C0."""
    c0 = 32 // x.dtype.itemsize
    padded = np.zeros((rows, columns), x.dtype)
    padded[: x.shape[0], : x.shape[1]] = x
    return np.ascontiguousarray(padded.reshape(rows // 16, 16, columns // c0, c0).transpose(2, 0, 1, 3))


def _split(x: np.ndarray, scale_exponent: int) -> tuple[np.ndarray, np.ndarray]:
    """Return high and low FP16 words of FP32 numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        high = x.astype(np.float16)
        return high, np.ldexp(x - high.astype(np.float32), scale_exponent).astype(np.float16)


def tile_faults(s: Kernel, trace: list[dict]) -> list[PtoFault]:
    """Return the tiles and ranges of k that a core stores in another order than the schedule's visits, pass by pass."""
    faults = []
    for core in range(s.used_cores):
        wanted = [
            (tile, s.k_slices[visit.slice], group)
            for _ in s.passes
            for visit in s.visits(core)
            for tile in visit.tiles
            for group in s.groups_of(s.k_slices[visit.slice])
        ]
        walked = [((rows, columns), group) for (rows, columns), _, group in wanted]
        stored = _stored(s, [line for line in trace if line["core"] == core])
        if stored != walked:
            number = next(
                (i for i, pair in enumerate(zip(stored, walked, strict=False)) if pair[0] != pair[1]), len(walked)
            )
            got, want = (seq[number] if number < len(seq) else "nothing" for seq in (stored, walked))
            faults.append(PtoFault("tiles", core, f"{len(stored)} tiles and k groups stored, {len(walked)} in the schedule; "
                                               f"number {number} is {got}, expected {want}"))  # fmt: skip
    return faults


def _stored(s: Kernel, lines: list[dict]) -> list[tuple]:
    """Return (rows and columns, range of k) of each sum that a core stored; the loads of A give the range."""
    found, depth, sums = [], [], 0
    rows, c0 = shapes_in_memory(s)["a"][0], 32 // s.operand_bytes
    for line in lines:
        if line["op"] == "load":
            if line["matrix"].split("_")[0] == "a":
                start = line["offset"] // rows // c0 * c0 if in_fractals(s) else line["offset"] % s.k
                depth.append((start, min(start + line["columns"], s.k)))
            continue
        sums += 1
        if sums % s.accumulators:  # other terms of the same tile
            continue
        row, column = divmod(line["offset"] % (s.m * s.n), s.n)
        tile = ((row, row + line["rows"]), (column, column + line["columns"]))
        found.append((tile, (min(x for x, _ in depth), max(y for _, y in depth)) if depth else None))
        depth = []
    return found
