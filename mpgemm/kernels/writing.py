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
from mpgemm.kernels.targets import check_words
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.reporting.provenance import package_version
from tensorcore_models.files import atomic_writer
from tensorcore_models.gpu.compiling import TargetKernel, triton_module
from tensorcore_models.gpu.launches import View
from tensorcore_models.gpu.targets import KernelTarget


@dataclass(frozen=True)
class WrittenKernel:
    """What was written.

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
    """The product of a method, rows of A and B without gaps, and its repair, compiled for a target."""
    form = kernel_form(row)
    check_words(target, form.format, row.name)
    m, n, k = shape
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
    return [compile_launch(launch, target, aligned=True) for launch in launches]


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
        As :func:`mpgemm.kernels.recipes.recipe` gives it; `method` is how it was called.
    method : str
    target : KernelTarget
    folder : str or Path
        Where the files go; it is made.
    shape : (int, int, int)
        m, n, k for which the counted model chooses a tile, and whose divisibility is compiled in.
    configuration : Configuration, optional
        The tile itself.
    types : (str, str)
        Of the elements of A and B.

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
    source = Path(kernel_function("gemm").fn.__code__.co_filename).read_text()
    files: dict[str, str | bytes] = {"source.py": source}
    entries = []
    for kernel in made:
        name = kernel.launch.function
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
    form = kernel_form(row)
    rows, columns, depth = (product.launch.constants[name] for name in ("BM", "BN", "BK"))
    tile = Configuration(rows, columns, depth, product.launch.warps, product.launch.stages)
    return {
        "method": method,
        "recipe": {
            "row": row.name, "formula": row.formula, "words": list(form.words), "format": form.format,
            "rounding": form.rounding, "scale_exponent": form.scale, "products": [list(p) for p in form.products],
            "accumulation": row.accumulation, "order": row.order, "restart_every": row.restart_every,
            "equilibrate": row.equilibrate, "repair": row.repair,
        },
        "target": target.name,
        "unit": target.unit,
        "bits_checked_here": target.gated,
        "run_on_hardware": False,
        "shape": list(shape),
        "configuration": tile.to_dict(),
        "estimate": asdict(estimate(form, tile, target, *shape)),
        "versions": {"triton": triton_module().__version__, "mpgemm": package_version()},
        "source_sha256": hashlib.sha256(source.encode()).hexdigest(),
        "kernels": entries,
    }  # fmt: skip
