"""This module checks an emitted AscendC kernel by its text: the cores that it starts and counts, and its tiling fields.

Nothing runs: the check reads `gemm.cpp` and `tiling.cpp` in the folder, with all changes that a user made.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from ascend.chips.files import get_chip
from ascend.emit.ascendc import CUBE_ONLY
from ascend.emit.faults import EmittedCheck, PtoFault
from ascend.tiling.rules import LARGEST_ND, Tiling, broken
from tensorcore_models.results import Result

#: Vector cores beside each cube.
VECTOR_CORES = 2


@dataclass(frozen=True, repr=False)
class AscendCCheck(EmittedCheck, Result):
    """`AscendCCheck` holds the faults in an AscendC kernel's text, with its core mode and its core counts.

    Attributes
    ----------
    name : str
        Name of the folder.
    mode : str
        Mode of the cores in the text: "cube only", "mix" or "coupled".
    counted : int
        Cores that usedCoreNum counts: cubes or vector cores, depending on the mode.
    cubes : int
        Cubes that have work.
    faults : tuple of PtoFault
        Faults; empty for a sound kernel.
    """

    name: str
    mode: str
    counted: int
    cubes: int
    faults: tuple[PtoFault, ...]

    def to_dict(self) -> dict:
        """Return the content as plain data for JSON."""
        return {"file": self.name, "sound": self.sound, "mode": self.mode, "counted": self.counted, "cubes": self.cubes,
                "faults": self.to_rows()}  # fmt: skip

    def sentences(self) -> list[str]:
        """Describe the check's faults in sentences, the headline first."""
        kind = {"cube only": "cubes", "mix": "vector cores", "coupled": "cores"}[self.mode]
        first = f"{self.name}: {self.mode}, usedCoreNum counts {self.counted} {kind}, {self.cubes} cubes have work"
        if self.sound:
            return [f"{first}; the fields obey the published rules; nothing was run"]
        return [first, *(f"{fault.kind}: {fault.what}" for fault in self.faults)]


def check_ascendc_kernel(folder: str | Path) -> AscendCCheck:
    """Check the kernel that `plan --emit ascendc` wrote into a folder.

    Raises
    ------
    ValueError
        If the folder holds no such kernel, or its tiling sets no fields.
    """
    folder = Path(folder)
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    kernel, tiling = (_code(folder / name) for name in ("gemm.cpp", "tiling.cpp"))
    fields = {name: int(value) for name, value in re.findall(r"tiling\.set_(\w+)\((\d+)\)", tiling) if name != "isBias"}
    if missing := sorted(record["tiling"].keys() - fields.keys()):
        raise ValueError(
            f"{folder / 'tiling.cpp'} does not set {', '.join(missing)}: expected a file that plan --emit ascendc wrote"
        )
    chip = get_chip(record["chip"])
    mode, each = _mode(kernel, bool(chip.fixpipe))
    cubes = min(-(-fields["usedCoreNum"] // each), chip.cores)
    faults = [PtoFault("mode", None, text) for text in _mode_faults(kernel, record, mode, each)]
    faults += [
        PtoFault("count", None, text) for text in _count_faults(tiling, record, fields["usedCoreNum"], mode, each)
    ]
    sliced, inner = record["clear_c"], max(record["k"], record["n"])
    checked = f"kIntrinsicsCheck = {str(inner > LARGEST_ND).lower()}" in kernel
    rules = Tiling(fields, chip, record["operand"], record["layout"], sliced, checked, each)
    faults += [PtoFault("rule", None, text) for text in broken(rules)]
    return AscendCCheck(str(folder), mode, fields["usedCoreNum"], cubes, tuple(faults))


def _code(path: Path) -> str:
    """Return the text of a file without comments."""
    if not path.is_file():
        raise ValueError(f"{path} does not exist: expected a folder that mpgemm plan --emit ascendc wrote")
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def _mode(kernel: str, split: bool) -> tuple[str, int]:
    """Return the core mode in the text, and the cores started per cube; `split` chips have cubes apart from vector cores."""
    if not split:
        return "coupled", 1
    define, include = kernel.find(CUBE_ONLY), kernel.find("lib/matmul_intf.h")
    if 0 <= define < include:
        return "cube only", 1
    found = re.search(r"KERNEL_TYPE_MIX_AIC_1_(\d)", kernel)
    return "mix", int(found[1]) if found else VECTOR_CORES


def _mode_faults(kernel: str, record: dict, mode: str, each: int) -> list[str]:
    found = []
    scales = "GetTensorC" in kernel
    if mode == "mix" and not scales:
        found.append(
            f"MIX mode without vector work: each product is sent by a vector core, and usedCoreNum counts {each} of them per "
            f"cube, so that the plan's {record['cubes']} are {-(-record['cubes'] // each)} cubes: put {CUBE_ONLY} before "
            "lib/matmul_intf.h"
        )
    if mode == "cube only" and scales:
        found.append(f"{CUBE_ONLY} starts no vector core, but the kernel scales its sums on vector cores: remove it")
    types = {"cube only": "KERNEL_TYPE_AIC_ONLY", "mix": f"KERNEL_TYPE_MIX_AIC_1_{each}"}
    if mode in types and types[mode] not in kernel:
        found.append(f"the mode is {mode}, but the kernel's type is not {types[mode]}")
    return found


def _count_faults(tiling: str, record: dict, used: int, mode: str, each: int) -> list[str]:
    found = []
    dim = re.search(r"SetDim\((\d+)\)", tiling)
    if dim is None or int(dim[1]) != used:
        found.append(f"SetDim({dim[1] if dim else ''}) and usedCoreNum = {used} differ: they must be equal")
    most = record["cubes"] * each
    if not (each - 1) * record["cubes"] < used <= most:
        found.append(
            f"usedCoreNum = {used}, but {record['cubes']} cubes in mode {mode} have at most {most} cores to count"
        )
    return found
