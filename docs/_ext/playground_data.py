"""What the playground's page reads: the kernel as WebAssembly, and the rows of the catalogue with what the kernel is told about them.

`python docs/_ext/playground_data.py FOLDER` writes both there, as scripts that a page loads from a folder on disk.
"""

import base64
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from tensorcore_models._kernels.generic import generic
from tensorcore_models.catalogue import list_instructions
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.formats import Format, IntegerFormat, get_float_format
from tensorcore_models.kernels.dispatch import lowered
from tensorcore_models.kernels.lowering import Lowered, laid_out

HERE = Path(__file__).resolve().parents[1] / "playground"
KERNELS = HERE.parents[1] / "tensorcore_models" / "_kernels"
#: Bytes that the module may have.
LARGEST = 300_000
#: What a machine needs for the playground, and what it gets without.
MISSING = "the playground is left out: it needs clang and wasm-ld (Debian: apt install clang lld)"
FLAGS = (
    "--target=wasm32", "-std=c11", "-Os", "-nostdlib", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-builtin",
    "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,-z,stack-size=1048576",
)  # fmt: skip


def can_compile() -> bool:
    """Whether the compiler and the linker are installed."""
    return all(shutil.which(tool) for tool in ("clang", "wasm-ld"))


def compile_module(path: Path) -> bytes:
    """Compile the kernel to a WebAssembly file; its bytes.

    Raises
    ------
    RuntimeError
        If the compiler refuses it, or it is larger than :data:`LARGEST`.
    """
    folders = [HERE / "include", *sorted(folder for folder in KERNELS.iterdir() if folder.is_dir())]
    sources = [HERE / "kernel.c", HERE / "runtime.c"]
    command = ["clang", *FLAGS, *(f"-I{folder}" for folder in folders), *map(str, sources), "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"clang cannot compile the kernel for WebAssembly:\n{done.stderr}")
    module = path.read_bytes()
    if len(module) > LARGEST:
        raise RuntimeError(f"the WebAssembly module has {len(module)} bytes, at most {LARGEST} are wanted")
    return module


# -- the catalogue -------------------------------------------------------------------------------------------------------
def format_data(fmt: Format | IntegerFormat) -> dict[str, Any]:
    """A format as the page takes it apart."""
    if isinstance(fmt, IntegerFormat):
        return {"bits": fmt.bits, "bytes": fmt.container.itemsize, "integer": True, "signed": fmt.signed}
    return {
        "bits": fmt.bits,
        "bytes": fmt.container.itemsize,
        "exponentBits": fmt.exponent_bits,
        "fractionBits": fmt.fraction_bits,
        "paddingBits": fmt.padding_bits,
        "bias": fmt.bias,
        "specials": fmt.specials,
        "signed": fmt.signed,
    }


def _words(data: bytes) -> list[int]:
    """The 32-bit words of a plan that are not 0, each after its index: most are."""
    words = struct.unpack(f"<{len(data) // 4}I", data)
    return [number for pair in enumerate(words) if pair[1] for number in pair]


def _whole_steps(row: Instruction, low: Lowered) -> tuple[generic.Plan, tuple[list[int], list[int], list[int]]]:
    """The plan of a row and how its passes are arranged.

    Chains of multiply-adds take hundreds of products in one pass, with a shorter last one; here a pass is an instruction, so that no
    last one is shorter.
    """
    if row.k % low.step == 0:
        return low.plan, laid_out(low.accumulator, low.step)
    arrangement = laid_out(low.accumulator, row.k)
    return generic.Plan(low.arithmetic[0] | {"step": row.k}, generic.Layout(*arrangement)), arrangement


def _conversion(row: Instruction, low: Lowered, side: int) -> dict[str, Any] | None:
    """How an operand is converted before it is multiplied: the target, with subnormal results flushed or not."""
    if low.converted is not None:
        target = (low.converted.a_format, low.converted.b_format)[side]
        flush = getattr(row.accumulator, "flush", False)
        same = target == row.formats[side] and not flush and not target.padding_bits
        return None if same else {"to": target.name, "flush": flush}
    table = (low.a_table, low.b_table)[side]
    if table is None:
        return None
    return {"to": get_float_format(row.accumulator.via_format).name, "flush": False}


class Tables:
    """Lists without repetitions that rows refer to by index."""

    def __init__(self):
        self.rows: list[list[int]] = []
        self._known: dict[tuple[int, ...], int] = {}

    def index(self, row: list[int]) -> int:
        """Where a list is, added if it is new."""
        key = tuple(row)
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(row)
        return self._known[key]


def catalogue_data() -> dict[str, Any]:
    """Formats, plans, arrangements of passes, and every row of the catalogue whose arithmetic is public."""
    formats: dict[str, Any] = {"fp64": format_data(get_float_format("fp64"))}
    plans, arrangements, rows = Tables(), Tables(), []
    for row in list_instructions():
        if not row.published:
            continue
        low = lowered(row)
        inner = low.converted or low
        plan, (order, bounds, tree) = _whole_steps(row, inner)
        conversions = [_conversion(row, low, side) for side in (0, 1)]
        used = [*row.formats, *([get_float_format(row.scale_format)] if row.scale_format else [])]
        used += [get_float_format(found["to"]) for found in conversions if found]
        formats |= {fmt.name: format_data(fmt) for fmt in used}
        rows.append(
            {
                "name": str(row),
                "family": type(row.accumulator).__name__,
                "title": row.accumulator.words(row.d_format).title,
                "k": row.k,
                "formats": [fmt.name for fmt in row.formats],
                "scale": {"format": row.scale_format, "block": row.block_size} if row.scale_format else None,
                "plan": plans.index(_words(plan.to_bytes())),
                "arrangement": arrangements.index([len(order), len(bounds) - 1, *order, *bounds, *tree]),
                "convert": conversions,
                "rollup": vars(row.rollup) if row.rollup else None,
            }
        )
    return {"formats": formats, "plans": plans.rows, "arrangements": arrangements.rows, "rows": rows}


def write(folder: Path) -> list[str]:
    """Write the module and the catalogue as scripts into a folder; their names.

    Raises
    ------
    RuntimeError
        As :func:`compile_module`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    module = compile_module(folder / "kernel.wasm")
    data = json.dumps(catalogue_data(), separators=(",", ":"))
    (folder / "module.js").write_text(f'mpgemm.module = "{base64.b64encode(module).decode()}";\n', encoding="utf-8")
    (folder / "catalogue.js").write_text(f"mpgemm.catalogue = {data};\n", encoding="utf-8")
    return ["module.js", "catalogue.js"]


if __name__ == "__main__":
    if not can_compile():
        sys.exit(MISSING)
    print(*write(Path(sys.argv[1])))
