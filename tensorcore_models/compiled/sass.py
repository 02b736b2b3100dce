"""Compares SASS with PTX: the floating-point instructions that ptxas made, by their counts.

ptxas may contract mul.f32 and add.f32 without a rounding into one FFMA (`--fmad=false` stops it). Then the PTX alone does not
determine what the hardware computes. Counts show the contraction, unless the PTX has instructions that ptxas expands into
several (division, roots).
"""

import importlib.util
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ..results import Result
from .ptx.program import PTXProgram

#: SASS instructions, with the PTX instructions that become one of each.
COUNTED = {
    "FADD": r"(?:add|sub)\.(?!.*x2).*f32", "FMUL": r"mul\.(?!.*x2).*f32", "FFMA": r"fma\.(?!.*x2).*f32",
    "FADD2": r"(?:add|sub)\..*f32x2", "FMUL2": r"mul\..*f32x2", "FFMA2": r"fma\..*f32x2",
    "HADD2": r"(?:add|sub)\..*f16(?:x2)?", "HMUL2": r"mul\..*f16(?:x2)?", "HFMA2": r"fma\..*f16(?:x2)?",
    "DADD": r"(?:add|sub)\..*f64", "DMUL": r"mul\..*f64", "DFMA": r"fma\..*f64",
    "HMMA, QMMA, OMMA": r"mma\.sync\..*(?:f16|bf16|tf32|e4m3|e5m2|e2m1|e3m2|e2m3).*", "IMMA": r"mma\.sync\..*s32\.[us][48].*",
    "DMMA": r"mma\.sync\..*f64.*", "HGMMA, QGMMA, IGMMA": r"wgmma\.mma_async.*", "UTCMMA": r"tcgen05\.mma.*",
}  # fmt: skip
#: Contractions: (addition, product, the multiply-add that they become).
_CONTRACTIONS = (
    ("FADD", "FMUL", "FFMA"),
    ("FADD2", "FMUL2", "FFMA2"),
    ("HADD2", "HMUL2", "HFMA2"),
    ("DADD", "DMUL", "DFMA"),
)
_HALVES = ("HADD2", "HMUL2", "HFMA2")
#: Instructions that ptxas expands into several, some of which are counted.
_WRITTEN_OUT = ("div", "sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "rem", "atom", "red")
_SASS = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)")
#: Time limit of nvdisasm in seconds.
_PATIENCE = 120.0


@dataclass(frozen=True, repr=False)
class SassComparison(Result):
    """`SassComparison` holds the counts of floating-point instructions in PTX and in SASS.

    Attributes
    ----------
    kernel : str
        Name of the entry.
    counts : dict of str to (int, int)
        SASS's name -> (number of instructions in PTX, in SASS).
    verdict : {"agree", "contracted", "repeated", "unknown"}
        Result of the comparison: counts are equal; additions and products became multiply-adds; all counts have one ratio
        (unrolled loops); or the counts decide nothing.
    reason : str
        Reason, with the numbers.
    """

    kernel: str
    counts: dict[str, tuple[int, int]]
    verdict: str
    reason: str

    def __str__(self) -> str:
        lines = [f"{name}: {ptx} in PTX, {sass} in SASS" for name, (ptx, sass) in self.counts.items()]
        return "\n".join([f"{self.kernel}, {self.verdict}: {self.reason}", *lines])

    def to_rows(self) -> list[dict]:
        """Return one row for each kind of instruction."""
        return [{"instruction": name, "ptx": ptx, "sass": sass} for name, (ptx, sass) in self.counts.items()]


def beside_sass(program: PTXProgram, sass: str) -> SassComparison:
    """Return the counts of a PTX entry beside those of its SASS.

    Parameters
    ----------
    program : PTXProgram
        Entry whose instructions are counted.
    sass : str
        Output of `nvdisasm -c` for the cubin (:func:`disassembled`), or its part for the function of that name.

    Returns
    -------
    SassComparison

    Raises
    ------
    ValueError
        If the text has no instructions of that entry.
    """
    code = _section(sass, program.name)
    found = Counter(_SASS.findall(code))
    if not found:
        raise ValueError(f"the SASS has no instructions of {program.name}: give the SASS of that kernel")
    counts: dict[str, tuple[int, int]] = {}
    opcodes = [ins.opcode for ins in program.written.code]
    for name, pattern in COUNTED.items():
        ptx = sum(bool(re.fullmatch(pattern, opcode)) for opcode in opcodes)
        made = sum(number for each, number in found.items() if _belongs(each, name))
        if ptx or made:
            counts[name] = ptx, made
    if not any(counts.get(name, (0, 0))[0] for name in _HALVES):
        for name in _HALVES:  # ptxas moves constants by HFMA2
            counts.pop(name, None)
    written_out = sorted({opcode for opcode in opcodes if opcode.partition(".")[0] in _WRITTEN_OUT})
    return SassComparison(program.name, counts, *_verdict(counts, written_out))


def _belongs(opcode: str, name: str) -> bool:
    return bool(re.fullmatch(r"UTC\w*MMA", opcode)) if name == "UTCMMA" else opcode in name.split(", ")


def _verdict(counts: dict[str, tuple[int, int]], written_out: list[str]) -> tuple[str, str]:
    if all(ptx == sass for ptx, sass in counts.values()):
        return "agree", "ptxas kept every floating-point instruction" if counts else "there are none"
    for names in _CONTRACTIONS:
        (a, more_a), (m, more_m), (f, more_f) = (counts.get(name, (0, 0)) for name in names)
        if a - more_a == m - more_m == more_f - f > 0:
            return "contracted", f"{more_f - f} of {a} {names[0]} and {m} {names[1]} became {names[2]}"
    if written_out:
        return "unknown", f"ptxas expands {', '.join(written_out[:3])} into several instructions"
    times = {sass / ptx if ptx else 0.0 for ptx, sass in counts.values()}
    if len(times) == 1 and (ratio := times.pop()) > 1 and ratio == int(ratio):
        return "repeated", f"SASS has each instruction {int(ratio)} times: ptxas unrolled loops"
    return "unknown", "the counts differ, and no contraction explains the difference"


def _section(sass: str, name: str) -> str:
    """Return the function of that name, if the text has several."""
    parts = re.split(r"^\s*(?:\.section\s+\.text\.|Function : )", sass, flags=re.M)
    if len(parts) == 1:
        return sass
    return "".join(part for part in parts[1:] if re.match(rf"{re.escape(name)}\b", part))


def disassembled(path: str | PathLike) -> str:
    """Return the SASS of a cubin by nvdisasm (from the PATH, or Triton's own); a text file is returned as it is.

    Raises
    ------
    ValueError
        If there is no nvdisasm, or it cannot read the file.
    OSError
        If the file cannot be read.
    """
    data = Path(path).read_bytes()
    if not data.startswith(b"\x7fELF"):
        return data.decode("utf-8", errors="replace")
    tool = shutil.which("nvdisasm") or _triton_s_own()
    if tool is None:
        raise ValueError(
            "no nvdisasm was found: install CUDA or Triton, or give the text that `nvdisasm -c` prints for the cubin"
        )
    done = subprocess.run([tool, "-c", str(path)], capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if done.returncode:
        said = next(iter((done.stderr or done.stdout).strip().splitlines()), f"exit status {done.returncode}")
        raise ValueError(
            f"nvdisasm cannot read {path} ({said}): give a cubin, or the text that `nvdisasm -c` prints for it"
        )
    return done.stdout


def _triton_s_own() -> str | None:
    found = importlib.util.find_spec("triton")
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    tools = (Path(folder) / "backends" / "nvidia" / "bin" / "nvdisasm" for folder in folders)
    return next((str(tool) for tool in tools if tool.exists()), None)
