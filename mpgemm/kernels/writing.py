"""Writes a kernel to a folder: compiled text, binary, source, and a record of the row that predicts its bits."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mpgemm.kernels.compiling import compile_launch, kernel_function
from mpgemm.kernels.configurations import Configuration, check_stages, choose, estimate
from mpgemm.kernels.counts import instruction_counts
from mpgemm.kernels.forms import kernel_form
from mpgemm.kernels.launches import gemm_launch, repair_launch
from mpgemm.kernels.residues import CHUNK, ResiduePlanes, residue_launches, residue_tile
from mpgemm.kernels.targets import check_words
from mpgemm.recovery.integer_words import residue_bits
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.reporting.provenance import package_version
from tensorcore_models.files import atomic_writer
from tensorcore_models.gpu.compiling import TargetKernel, triton_module
from tensorcore_models.gpu.launches import TritonLaunch, View
from tensorcore_models.gpu.targets import KernelTarget


@dataclass(frozen=True)
class WrittenKernel:
    """`WrittenKernel` holds the files that were written for a kernel.

    Attributes
    ----------
    files : tuple of str
        Names of the files in the folder.
    record : dict
        Contents of record.json.
    kernels : tuple of TargetKernel
        Compiled kernels, the product first.
    """

    files: tuple[str, ...]
    record: dict
    kernels: tuple[TargetKernel, ...]


def kernels_of(
    row: RecoveryMethod, target: KernelTarget, shape: tuple[int, int, int], configuration: Configuration | None, types
) -> list[TargetKernel]:
    """Compile the kernels that a method's product launches, for a target and contiguous A and B."""
    check_words(target, row.formats[0] if row.kind == "words" else "s8", row.name)
    made = _word_launches if row.kind == "words" else _residue_launches
    launches = made(row, target, shape, configuration, types)
    return [compile_launch(launch, target, aligned=True) for launch in launches]


def _word_launches(row: RecoveryMethod, target: KernelTarget, shape, configuration, types) -> list[TritonLaunch]:
    """Return the launches of a product of words, and of its repair."""
    form, (m, n, k) = kernel_form(row), shape
    tile = configuration or choose(form, target, m, n, k)
    check_stages(form, tile, target)
    a, b = View(None, types[0], (m * k, k, 1)), View(None, types[1], (k * n, n, 1))
    out = View(None, "fp32", (m * n, n, 1))
    exponents = None
    if row.equilibrate == "rows":
        exponents = View(None, "s32", (m, 1, 1)), View(None, "s32", (n, 1, 1))
    launches = [gemm_launch(form, tile, (1, m, n, k), a, b, out, exponents=exponents)]
    if row.repair == "fp32":
        launches.append(repair_launch((1, m, n, k), a, b, out))
    return launches


def _residue_launches(row: RecoveryMethod, target: KernelTarget, shape, configuration, types) -> list[TritonLaunch]:
    """Return the launches of the product of residues, of the residues, and of the join."""
    m, n, k = shape
    planes = ResiduePlanes(row.moduli, (1, m, n, k))
    a, b, out = (View(None, "fp64", (rows * columns, columns, 1)) for rows, columns in ((m, k), (k, n), (m, n)))
    room, tile = dict.fromkeys(planes.workspace()), configuration or residue_tile(target)
    made, product, join = residue_launches(planes, a, b, out, room, tile)
    return [product, made, join]


def write_kernel(
    row: RecoveryMethod,
    method: str,
    target: KernelTarget,
    folder: str | Path,
    shape: tuple[int, int, int] = (4096, 4096, 4096),
    configuration: Configuration | None = None,
    types: tuple[str, str] = ("fp32", "fp32"),
) -> WrittenKernel:
    """Compile a method for a target and write the files.

    Parameters
    ----------
    row : RecoveryMethod
        Row that :func:`mpgemm.kernels.recipes.recipe` returns, or :func:`mpgemm.kernels.residues.residue_method` for residues.
    method : str
        Name with options, for the record.
    target : KernelTarget
        Target.
    folder : str or Path
        Folder for the files, which is made if it does not exist.
    shape : (int, int, int)
        Sizes m, n, k for which the counted model chooses a tile, and whose divisibility is compiled in.
    configuration : Configuration, optional
        Tile, warps and stages, in place of the model's choice.
    types : (str, str)
        Types of the elements of A and B; fp64 for residues.

    Raises
    ------
    ImportError
        If Triton is not installed.
    ValueError
        If the target cannot multiply the words, or the kernel cannot be compiled.
    OSError
        If a file cannot be written.
    """
    folder = Path(folder)
    made = kernels_of(row, target, shape, configuration, types)
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(kernel_function(made[0].launch.function).fn.__code__.co_filename).read_text()
    files: dict[str, str | bytes] = {"source.py": source}
    entries = []
    for name, kernel in ((kernel.launch.function, kernel) for kernel in made):
        text, binary = ("ptx", "cubin") if target.backend == "cuda" else ("amdgcn", "hsaco")
        files[f"{name}.{text}"] = kernel.assembly
        if kernel.binary is not None:
            files[f"{name}.{binary}"] = kernel.binary
        entries.append(
            {
                "function": name, "entry": kernel.name, "parameters": list(kernel.parameters), "types": dict(kernel.types),
                "fixed": dict(kernel.fixed), "multiples_of_16": list(kernel.multiples), "grid": kernel.launch.grid,
                "threads": kernel.launch.warps * target.warp, "shared_bytes": kernel.shared, "sha256": kernel.digest,
                "counts": instruction_counts(kernel.assembly),
            }
        )  # fmt: skip
    record = _record(row, method, target, shape, made[0], entries, source)
    files["record.json"] = json.dumps(record, indent=2) + "\n"
    for name, content in files.items():
        with atomic_writer(folder / name) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    return WrittenKernel(tuple(files), record, tuple(made))


def _record(row, method: str, target: KernelTarget, shape, product: TargetKernel, entries, source: str) -> dict:
    rows, columns, depth = (product.launch.constants[name] for name in ("BM", "BN", "BK"))
    tile = Configuration(rows, columns, depth, product.launch.warps, product.launch.stages)
    words = row.kind == "words"
    return {
        "method": method,
        "recipe": {"row": row.name, "formula": row.formula, **(_word_recipe(row) if words else _residue_recipe(row, shape[2]))},
        "target": target.name,
        "unit": target.unit,
        "bits_checked_here": target.gated,
        "run_on_hardware": False,
        "shape": list(shape),
        "configuration": tile.to_dict(),
        "estimate": asdict(estimate(kernel_form(row), tile, target, *shape)) if words else None,
        "versions": {"triton": triton_module().__version__, "mpgemm": package_version()},
        "source_sha256": hashlib.sha256(source.encode()).hexdigest(),
        "kernels": entries,
    }  # fmt: skip


def _word_recipe(row: RecoveryMethod) -> dict:
    form = kernel_form(row)
    return {
        "words": list(form.words), "format": form.format, "rounding": form.rounding, "scale_exponent": form.scale,
        "products": [list(p) for p in form.products], "accumulation": row.accumulation, "order": row.order,
        "restart_every": row.restart_every, "equilibrate": row.equilibrate, "repair": row.repair, "parts": row.parts,
    }  # fmt: skip


def _residue_recipe(row: RecoveryMethod, k: int) -> dict:
    """Return the moduli and bits of a residue kernel for the record.

    `bits` depends on k. `most_k` is the largest k of this text, because an int32 holds the sum of CHUNK products; it is None
    if the text splits longer k.
    """
    return {
        "moduli": list(row.moduli), "format": "s8", "bits": residue_bits(row.moduli, k),
        "most_k": CHUNK if k <= CHUNK else None,
    }  # fmt: skip
