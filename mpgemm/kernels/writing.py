"""A kernel written to a folder: compiled text, binary, source, and a record that says whose bits it gives."""

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
    """The files that were written for a kernel.

    Attributes
    ----------
    files : tuple of str
        Names in the folder.
    record : dict
        As in record.json.
    kernels : tuple of TargetKernel
        What was compiled: the product first.
    """

    files: tuple[str, ...]
    record: dict
    kernels: tuple[TargetKernel, ...]


def kernels_of(
    row: RecoveryMethod, target: KernelTarget, shape: tuple[int, int, int], configuration: Configuration | None, types
) -> list[TargetKernel]:
    """List the kernels that a product of a method launches, rows of A and B without gaps, compiled for a target."""
    check_words(target, row.formats[0] if row.kind == "words" else "s8", row.name)
    made = _word_launches if row.kind == "words" else _residue_launches
    launches = made(row, target, shape, configuration, types)
    return [compile_launch(launch, target, aligned=True) for launch in launches]


def _word_launches(row: RecoveryMethod, target: KernelTarget, shape, configuration, types) -> list[TritonLaunch]:
    """Return the product of words, and its repair."""
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
    """Return the product of residues, what makes them, and the join."""
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
    """Compile a method for a target and write it.

    Parameters
    ----------
    row : RecoveryMethod
        As :func:`mpgemm.kernels.recipes.recipe` or, of residues, :func:`mpgemm.kernels.residues.residue_method` gives it;
        `method` is how it was called.
    method : str
    target : KernelTarget
    folder : str or Path
        Where the files go; it is made.
    shape : (int, int, int)
        m, n, k for which the counted model chooses a tile, and whose divisibility is compiled in.
    configuration : Configuration, optional
        The tile itself.
    types : (str, str)
        Of the elements of A and B; those of residues are fp64.

    Raises
    ------
    ImportError
        Without Triton.
    ValueError
        If the target does not multiply the words, or the kernel cannot be compiled.
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
    """The argument `bits` is that of the product's k; an int32 holds sums of so many products, of more the text is another."""
    return {
        "moduli": list(row.moduli), "format": "s8", "bits": residue_bits(row.moduli, k),
        "most_k": CHUNK if k <= CHUNK else None,
    }  # fmt: skip
