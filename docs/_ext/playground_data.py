"""Writes the data of the playground: the kernel as WebAssembly, and the catalogue's rows with the kernel's parameters.

`python docs/_ext/playground_data.py FOLDER` writes both to a folder, as scripts that a page can load from disk.
"""

import base64
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from playground_functions import functions_data

from tensorcore_models._kernels.generic import generic
from tensorcore_models.arithmetic.numbers import NAN, special_bits
from tensorcore_models.atlas.witnesses import PairWitness, witness
from tensorcore_models.catalogue import get_instruction, list_instructions
from tensorcore_models.catalogue.devices import DEVICES
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.families.fidelity.specification import INTEGER_BITS, IntegerPhases, follows
from tensorcore_models.formats import Format, IntegerFormat, get_float_format
from tensorcore_models.kernels.dispatch import lowered
from tensorcore_models.kernels.lowering import Lowered, laid_out
from tensorcore_models.orders.trees import tree_of

HERE = Path(__file__).resolve().parents[1] / "playground"
KERNELS = HERE.parents[1] / "tensorcore_models" / "_kernels"
#: Folder of the site with the files that the page loads.
FOLDER = "_static/playground"
#: Names of the scripts, each after those that it needs.
SCRIPTS = (
    "module", "catalogue", "formats", "numbers", "kernel", "units", "steps", "functions", "address", "drawing", "search",
    "methods", "chart", "dots", "lookups", "matrices", "page",
)  # fmt: skip
#: Names of the fields of a dot product (dots.js).
FIELDS = ("units", "a", "b", "c", "sa", "sb")
#: Largest number of products that the page takes (dots.js).
MOST_TERMS = 32
#: Pairs of instructions for which the page offers a distinguishing input.
EXAMPLES = (
    ("volta:mma.m8n8k4.f32.f16.f16.f32", "hopper:mma.m16n8k16.f32.f16.f16.f32"),
    ("ampere:mma.m16n8k16.f32.f16.f16.f32", "hopper:mma.m16n8k16.f32.f16.f16.f32"),
    ("hopper:mma.m16n8k16.f32.f16.f16.f32", "cdna3:v_mfma_f32_32x32x8_f16"),
    ("hopper:mma.m16n8k16.f32.f16.f16.f32", "ascend:cube.m16n16k16.f32.f16.f16.f32"),
    ("gaudi2:mme.k8.f32.f16.f16.f32", "hopper:mma.m16n8k16.f32.f16.f16.f32"),
    ("hopper:wgmma.m64n8k32.f32.e4m3.e4m3", "ada:mma.m16n8k32.f32.e4m3.e4m3.f32"),
    ("ampere:mma.m16n8k8.f32.bf16.bf16.f32", "arm:bfmmla.m2n2k4.f32.bf16.bf16.f32"),
)  # fmt: skip
#: Largest size of the module in bytes.
LARGEST = 300_000
#: Message for a machine that cannot build the playground.
MISSING = "the playground is left out: it needs clang and wasm-ld (Debian: apt install clang lld)"
FLAGS = (
    "--target=wasm32", "-std=c11", "-Oz", "-nostdlib", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-builtin",
    "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,-z,stack-size=1048576",
)  # fmt: skip


def can_compile() -> bool:
    """Return whether the compiler and the linker are installed."""
    return all(shutil.which(tool) for tool in ("clang", "wasm-ld"))


def compile_module(path: Path) -> bytes:
    """Compile the kernel to a WebAssembly file and return its bytes.

    Raises
    ------
    RuntimeError
        If the compiler fails, or the module is larger than :data:`LARGEST`.
    """
    folders = [HERE / "include", *sorted(folder for folder in KERNELS.iterdir() if folder.is_dir())]
    sources = [HERE / f"{name}.c" for name in ("kernel", "functions", "runtime")]
    command = ["clang", *FLAGS, *(f"-I{folder}" for folder in folders), *map(str, sources), "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"clang cannot compile the kernel for WebAssembly; its errors are:\n{done.stderr}")
    module = path.read_bytes()
    if len(module) > LARGEST:
        raise RuntimeError(
            f"the WebAssembly module has {len(module)} bytes, expected at most {LARGEST}: make the kernel smaller"
        )
    return module


# -- the catalogue -------------------------------------------------------------------------------------------------------
def format_data(fmt: Format | IntegerFormat) -> dict[str, Any]:
    """Return the facts by which the page decodes a format."""
    if isinstance(fmt, IntegerFormat):
        return {"bits": fmt.bits, "bytes": fmt.container.itemsize, "integer": True, "signed": fmt.signed}
    listed = {} if fmt.has_fields else {"numbers": _numbers(fmt), "beyond": fmt.beyond}
    return listed | {
        "bits": fmt.bits,
        "bytes": fmt.container.itemsize,
        "exponentBits": fmt.exponent_bits,
        "fractionBits": fmt.fraction_bits,
        "paddingBits": fmt.padding_bits,
        "bias": fmt.bias,
        "specials": fmt.specials,
        "signed": fmt.signed,
    }


def _numbers(fmt: Format) -> list[list[Any]]:
    """Return (kind, negative, significand, exponent) for every encoding of a format without fields."""
    return [list(fmt.decode_exact(code)) for code in range(1 << fmt.bits)]


def _words(data: bytes) -> list[int]:
    """Return the nonzero 32-bit words of a plan, each after its index."""
    words = struct.unpack(f"<{len(data) // 4}I", data)
    return [number for pair in enumerate(words) if pair[1] for number in pair]


def _whole_steps(row: Instruction, low: Lowered) -> tuple[generic.Plan, tuple[list[int], list[int], list[int]]]:
    """Return the plan of a row and the arrangement of its passes.

    A pass of a chain of multiply-adds takes hundreds of products, and the last pass may be shorter. Here a pass is an
    instruction, so that all passes have the same length.
    """
    if row.k % low.step == 0:
        return low.plan, laid_out(low.accumulator, low.step)
    arrangement = laid_out(low.accumulator, row.k)
    return generic.Plan(low.arithmetic[0] | {"step": row.k}, generic.Layout(*arrangement)), arrangement


def _conversion(row: Instruction, low: Lowered, side: int) -> dict[str, Any] | None:
    """Return the format to which an operand is converted, and whether the conversion flushes; None without conversion."""
    if low.converted is not None:
        target = (low.converted.a_format, low.converted.b_format)[side]
        flush = getattr(row.accumulator, "flush", False)
        same = target == row.formats[side] and not flush and not target.padding_bits
        return None if same else {"to": target.name, "flush": flush}
    table = (low.a_table, low.b_table)[side]
    if table is None:
        return None
    return {"to": get_float_format(row.accumulator.via_format).name, "flush": False}


def _between(row: Instruction, low: Lowered) -> dict[str, Any] | None:
    """Return the conversions of c and results around a sum in another format; None if there are none."""
    if low.finish is None:
        return None
    via, d = low.converted.d_format, row.formats[3]
    nans = [str(special_bits(NAN, fmt, row.accumulator)) for fmt in (via, d)]
    return {"format": via.name, "every": low.every, "nans": nans}


def _integer_phases(row: Instruction) -> list[list[int]] | None:
    """Return the bits of both magnitudes that each phase multiplies; None for units without phases."""
    if not isinstance(row.accumulator, IntegerPhases):
        return None
    return [[INTEGER_BITS[side][follows(phase, side)] for side in (0, 1)] for phase in row.accumulator.phases]


def _c_first(row: Instruction) -> bool:
    """Return whether c is an addend of the first operation of a sum."""
    tree = tree_of(row.accumulator, row.k)
    return tree is None or tree.parents[{name: leaf for leaf, name in tree.names}["c"]] == 0


class Tables:
    """`Tables` holds lists without repetitions, to which rows refer by index."""

    def __init__(self):
        self.rows: list[list[int]] = []
        self._known: dict[tuple[int, ...], int] = {}

    def index(self, row: list[int]) -> int:
        """Return the index of a list, which is added if it is new."""
        key = tuple(row)
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(row)
        return self._known[key]


def catalogue_data() -> dict[str, Any]:
    """Return formats, plans, arrangements of passes, and all rows of the catalogue whose arithmetic is public."""
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
                "cFirst": _c_first(row),
                "formats": [fmt.name for fmt in row.formats],
                "scale": {"format": row.scale_format, "block": row.block_size} if row.scale_format else None,
                "plan": plans.index(_words(plan.to_bytes())),
                "arrangement": arrangements.index([len(order), len(bounds) - 1, *order, *bounds, *tree]),
                "convert": conversions,
                "between": _between(row, low),
                "phases": _integer_phases(row),
                "parts": inner.arithmetic[0].get("part_masks") if inner.arithmetic else None,
                "rollup": vars(row.rollup) if row.rollup else None,
            }
        )
    return {"formats": formats, "plans": plans.rows, "arrangements": arrangements.rows, "rows": rows}


# -- inputs that tell units apart ----------------------------------------------------------------------------------------
def link_state(rows: Sequence[Instruction], found: PairWitness) -> dict[str, str] | None:
    """Return the values of the page's fields for an input of some instructions; None if the input is too long."""
    a_format, b_format, c_format, _ = rows[0].formats
    count = max([k for k, (x, y) in enumerate(zip(found.a, found.b, strict=True)) if x or y], default=0) + 1
    if count > MOST_TERMS:
        return None
    spelled = ((found.a[:count], a_format), (found.b[:count], b_format), ((found.c,), c_format))
    codes = {name: " ".join(_hex(x, fmt) for x in given) for name, (given, fmt) in zip("abc", spelled, strict=True)}
    return {"units": " ".join(map(str, rows))} | codes


def _hex(code: int, fmt: Format | IntegerFormat) -> str:
    return f"0x{code:0{-(-fmt.bits // 4)}x}"


def examples() -> list[dict[str, Any]]:
    """Return distinguishing inputs of the pairs in :data:`EXAMPLES`."""
    found = []
    for names in EXAMPLES:
        rows = [get_instruction(name) for name in names]
        seen = witness(*rows)
        state = seen and link_state(rows, seen)
        if not state:
            raise RuntimeError(
                f"no input of at most {MOST_TERMS} products was found that tells {' from '.join(names)}: choose another pair"
            )
        found.append({"title": " or ".join(names), "state": state})
    return found


def write(folder: Path) -> None:
    """Write all files that the page loads into a folder.

    Raises
    ------
    RuntimeError
        If :func:`compile_module` fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    module = base64.b64encode(compile_module(folder / "kernel.wasm")).decode()
    devices = {name: arch for name, (arch, _) in DEVICES.items()}
    catalogue = json.dumps(
        catalogue_data() | {"devices": devices, "examples": examples(), "functions": functions_data()},
        separators=(",", ":"),
    )
    for name, value in (("module", f'"{module}"'), ("catalogue", catalogue)):
        text = f"globalThis.mpgemm = globalThis.mpgemm || {{}};\nmpgemm.{name} = {value};\n"
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    for path in [*(HERE / "js").glob("*.js"), HERE / "playground.css"]:
        shutil.copy(path, folder / path.name)


def panels(root: str, state: Mapping[str, str] | None = None) -> str:
    """Return the page's panels and the scripts that fill them.

    Parameters
    ----------
    root : str
        Relative path from the page to the root of the site.
    state : mapping, optional
        Initial values of the fields of the dot product; a page with these has no panel of matrices.
    """
    scripts = "\n".join(f'<script src="{root}{FOLDER}/{name}.js"></script>' for name in SCRIPTS)
    loading = "The playground is loading; it needs JavaScript and WebAssembly."
    given = f' data-state="{escape(json.dumps(state))}"' if state else ""
    dots = f'<div class="playground" id="playground-dots"{given}>{loading}</div>'
    if state is None:
        others = {"A special function": "functions", "Two matrices": "matrices"}
        headed = (
            f'<h2>{title}</h2>\n<div class="playground" id="playground-{name}"></div>' for title, name in others.items()
        )
        dots = "\n".join([f"<h2>A dot product</h2>\n{dots}", *headed])
    return f'<link rel="stylesheet" href="{root}{FOLDER}/playground.css">\n{dots}\n{scripts}'


if __name__ == "__main__":
    if not can_compile():
        sys.exit(MISSING)
    write(Path(sys.argv[1]))
