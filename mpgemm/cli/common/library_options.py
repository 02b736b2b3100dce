"""Adds and reads the options that name a GPU library, its configuration, and the formats of operands and result."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from tensorcore_models import libraries
    from tensorcore_models.libraries.recorded import Problem


@dataclass(frozen=True)
class Library:
    """`Library` is a GPU library whose kernels the commands know."""

    name: str  #: Name on the command line.
    calls: tuple[str, ...]  #: Names of calls and libraries that run its kernels.
    needs: str  #: Options that must be given with it.


LIBRARIES = (
    Library(
        "cublaslt", ("cublas", "torch.matmul", "torch.mm", "torch.bmm", "torch.addmm", "torch.nn.functional.linear"),
        "a version, as in cublaslt-13.1, and --config ALGO_ID=... or --recorded FILE",
    ),
    Library(
        "scaled_mm", ("torch._scaled_mm",),
        "FP8 operands; --config fast_accumulation=, split_k=, scheme= (defaults: false, 1, none) or --recorded mmaemu",
    ),
    Library("cutlass", (), "--config tile_k=, split_k=, ... as the kernel was built (without --config: one chain over k)"),
)  # fmt: skip


def resolve_library(text: str) -> tuple[str, str]:
    """Return (library, version or "") of a name such as "torch.matmul-13.1". Raises ValueError if the library is not known."""
    name, _, version = text.partition("-")
    for library in LIBRARIES:
        if name == library.name or name in library.calls:
            return library.name, version
    known = ", ".join(name for library in LIBRARIES for name in (library.name, *library.calls))
    raise ValueError(f"unknown library {text!r}, expected one of {known}")


def which_library(gpu: str) -> str:
    """Return a message that asks for --library: it lists the libraries known on a device and the options that each needs."""
    from tensorcore_models.catalogue import canonical_device
    from tensorcore_models.libraries.cublaslt_tables import PLATFORMS, TARGETS

    device = canonical_device(gpu)
    versions = [version for target, version in PLATFORMS if target == TARGETS.get(gpu)]
    known = []
    for library in LIBRARIES:
        here = _here(library.name, gpu, versions)
        calls = f" (which {', '.join(library.calls)} call)" if library.calls else ""
        known.append(f"{library.name}{calls}: {here or library.needs}")
    return (
        f"--library is not given, and libraries compute different bits on {device}: give --library with one of these names. "
        + "; ".join(known)
    )


def _here(name: str, gpu: str, versions: Sequence[str]) -> str:
    """Return why a library is not known on a device, or "" if it is known."""
    from tensorcore_models.libraries.cublaslt_tables import TARGETS
    from tensorcore_models.libraries.scaled_mm import DEVICES as SCALED_DEVICES

    if name == "cublaslt" and not versions:
        return f"not possible on {gpu}, only on {', '.join(TARGETS)}"
    if name == "scaled_mm" and gpu not in SCALED_DEVICES:
        return f"not possible on {gpu}, only on {', '.join(SCALED_DEVICES)}"
    return ""


#: The command that records cuBLASLt's choices of kernels.
RECORD = (
    "`python -m tensorcore_models.hardware.libraries.cublaslt_heuristic --device h100 --format fp16 --shape M K N --out "
    "chosen.json` where the GPU is"
)
#: The source of recorded choices of torch._scaled_mm.
RECORDED_CHOICES = "choices recorded by the package mmaemu: pip install --no-deps mmaemu"


def add_format_arguments(parser: argparse.ArgumentParser, out_default: str = "that of A; fp8: bf16") -> None:
    """Add the options that name the formats of operands and result, and the rounding to them."""
    add = parser.add_argument
    add(
        "--operands",
        dest="format",
        metavar="FORMAT",
        help="format of A and B (default: the format of their arrays; required for arrays of unsigned integers). Unsigned "
        "integers are read as encodings if they have the width of the format, else as numbers",
    )
    add(
        "--input-rounding",
        metavar="MODE",
        help="rounding of elements of A and B that the format cannot represent: rne, rz, ... (default: such "
        "elements are refused)",
    )
    add("--out-format", metavar="FORMAT", help=f"format of the result (default: {out_default})")


CUTLASS_OPTIONS = ("tile_k", "split_k", "split_mode", "grain", "sliced_k", "residue")
SCALED_OPTIONS = ("fast_accumulation", "split_k", "scheme")


#: Formats of signed integer files; a file of unsigned integers may hold encodings, so its format must be named.
INTEGERS = {"int8": "s8", "int32": "s32"}
#: Default format of the result, by the format of the operands; for all other formats it is bf16.
OUTPUTS = {"tf32": "fp32", "s8": "s32", "fp16": "fp16", "bf16": "bf16", "fp32": "fp32", "fp64": "fp64"}


def read_operand(path: str, name: str | None, rounding: str | None) -> tuple[np.ndarray, str]:
    """Return the encodings in a matrix file and their format."""
    from mpgemm.inputs.files import read_matrix
    from tensorcore_models.formats import operand_format
    from tensorcore_models.formats.interop import format_of_dtype
    from tensorcore_models.formats.operands import operand_bits

    array = read_matrix(path, encodings=name is not None)
    name = INTEGERS.get(array.dtype.name) if name is None else name
    fmt = format_of_dtype(array.dtype) if name is None else operand_format(name)
    if fmt is None:
        raise ValueError(
            f"{path} holds {array.dtype}, which is no format of a matrix unit: name the format with --operands"
        )
    if array.dtype.kind == "u" and array.dtype == fmt.container:
        return array, fmt.name
    return operand_bits(array, fmt, rounding, str(path)), fmt.name


def read_operands(args: argparse.Namespace, *, library_rounds: bool = False) -> tuple[np.ndarray, np.ndarray, str, str]:
    """Return A, B, their format and the output format, after a check of the shapes.

    With `library_rounds`, operands of TF32 stay encodings of FP32, because the library's recipe rounds them.
    """
    from tensorcore_models.formats import operand_format

    given = args.format
    words = library_rounds and given is not None and operand_format(given).name == "tf32"
    if words and args.input_rounding is not None:
        raise ValueError(
            "--input-rounding has no effect, because this library rounds FP32 to TF32 itself: leave --input-rounding out"
        )
    a, fmt = read_operand(args.a, "fp32" if words else given, args.input_rounding)
    b, other = read_operand(args.b, "fp32" if words else given, args.input_rounding)
    fmt, other = ("tf32", "tf32") if words else (fmt, other)
    if fmt != other:
        raise ValueError(f"A is {fmt} and B is {other}, expected one format for both: name the format with --operands")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"A is {a.shape} and B is {b.shape}, expected as many columns of A as rows of B: check the files' order"
        )
    if min(*a.shape, b.shape[1]) < 1:
        raise ValueError(
            f"A is {a.shape} and B is {b.shape}, but an empty product has no bits to predict: give other matrices"
        )
    return a, b, fmt, output_format(args, fmt)


def output_format(args: argparse.Namespace, fmt: str) -> str:
    """Return the format that --out-format names, by default the operands' format if libraries return it, else bf16."""
    from tensorcore_models.formats import operand_format

    if args.out_format is not None:
        return operand_format(args.out_format).name
    return OUTPUTS.get(fmt, "bf16")


def parse_config(texts: list[str]) -> dict[str, str]:
    """Parse FIELD=VALUE texts, separated by spaces or commas, into a dict."""
    config = {}
    for item in (part for text in texts for part in text.split(",") if part):
        name, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"--config got {item!r}, expected FIELD=VALUE, such as ALGO_ID=66,STAGES_ID=35")
        if name.strip() in config:
            raise ValueError(f"--config gives {name.strip()} twice, expected once")
        config[name.strip()] = value.strip()
    return config


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--config got {name}={text}, expected an integer") from None


def integer_config(config: dict[str, str]) -> dict[str, int | None]:
    """Return a configuration of cuBLASLt with its values converted to integers."""
    return {field: _integer(field, text) for field, text in config.items()}


def make_recipe(
    gpu: str,
    library: str,
    config: dict[str, str],
    problem: Problem,
    recorded: str | None = None,
) -> libraries.Recipe:
    """Return the recipe of one product that a library, its configuration or a recording names."""
    from tensorcore_models import libraries

    name, version = resolve_library(library)
    if recorded is not None and name != "cublaslt" and (name, recorded) != ("scaled_mm", "mmaemu"):
        raise ValueError(
            f"got --recorded {recorded} with --library {library}, but --recorded FILE goes with --library "
            "cublaslt-VERSION, and --recorded mmaemu with --library scaled_mm: change one of them, or leave "
            "--recorded out"
        )
    if name == "cublaslt":
        return _cublaslt(gpu, library.partition("-")[0], version, config, recorded, problem)
    if name == "scaled_mm":
        return _scaled_mm(gpu, config, recorded, problem)
    _known(config, CUTLASS_OPTIONS)
    if problem.format == "fp32":
        raise ValueError(
            "the operands are fp32, which tensor cores do not take: name the format to which the kernel converts them with "
            "--operands fp16 (or bf16, tf32, e4m3fn), and its rounding with --input-rounding"
        )
    options: dict[str, Any] = {f: t if f in ("split_mode", "residue") else _integer(f, t) for f, t in config.items()}
    return libraries.cutlass(gpu, k=problem.k, format=problem.format, **options)


def _cublaslt(
    gpu: str, called: str, version: str | None, config: dict[str, str], recorded: str | None, problem: Problem
) -> libraries.Recipe:
    """Return the recipe of cuBLASLt for a configuration that is named or recorded; `called` is its name on the command line."""
    from tensorcore_models import libraries
    from tensorcore_models.libraries.recorded import load_recording

    if recorded is not None and config:
        raise ValueError("got --recorded and --config, but the recording states the configuration: leave --config out")
    if recorded is not None:
        return load_recording(recorded, device=gpu, version=version or None).recipe(problem)
    if not version:
        ends = "" if called == "cublaslt" else " of cuBLASLt, which it calls"
        raise ValueError(f"--library {called} names no version{ends}: add one, such as {called}-13.1")
    if not config:
        raise ValueError(
            "no kernel is named, and cuBLASLt chooses its kernel at run time: name the kernel with --config ALGO_ID=..., or "
            "give a "
            f"--recorded file, written by {RECORD}"
        )
    p = problem
    return libraries.configured(
        gpu, version, m=p.m, k=p.k, n=p.n, format=p.format, out_format=p.out_format, config=config
    )


def _scaled_mm(gpu: str, config: dict[str, str], recorded: str | None, p: Problem) -> libraries.Recipe:
    """Return the recipe of torch._scaled_mm; if `recorded` is not None, mmaemu's table determines how k is split."""
    from tensorcore_models import libraries

    _known(config, SCALED_OPTIONS)
    fast = config.get("fast_accumulation", "false").lower()
    if fast not in ("true", "false", "1", "0"):
        raise ValueError(f"--config got fast_accumulation={fast}, expected true or false")
    unit: dict[str, Any] = {"device": gpu, "a_format": p.format, "b_format": p.format}
    unit["fast_accumulation"] = fast in ("true", "1")
    if recorded is None:
        split_k, scheme = _integer("split_k", config.get("split_k", "1")), config.get("scheme")
    elif {"split_k", "scheme"} & set(config):
        raise ValueError("--recorded mmaemu determines split_k and scheme: leave these two fields out of --config")
    else:
        split_k, scheme = libraries.recorded_split(p.m, p.k, p.n, out_format=p.out_format, **unit)
    return libraries.scaled_mm_recipe(p.k, split_k=split_k, scheme=scheme, **unit)


def _known(config: dict[str, str], names: tuple[str, ...]) -> None:
    unknown = [name for name in config if name not in names]
    if unknown:
        raise ValueError(f"--config got the field {unknown[0]!r}, expected one of {', '.join(names)}")


def cutlass_assumptions(library: str, config: dict[str, str], recipe: libraries.Recipe) -> tuple[str, ...]:
    """List the assumptions of a prediction for CUTLASS: a default tile of k matters if k is no multiple of it."""
    if resolve_library(library)[0] != "cutlass" or "tile_k" in config:
        return ()
    return (
        f"tile_k is 32, because --config does not state it. k ({recipe.k}) is no multiple of it, so the residue is summed "
        "first and the bits depend on tile_k. Kernels' names state it (32 in 64x64_32x6; 32 to 128 in an H100's 16-bit "
        "kernels): give --config tile_k=...",
    )


def rounds_operands(gpu: str, library: str | None) -> bool:
    """Return whether a library's recipes round FP32 operands to TF32, because recordings show how this version rounds."""
    from tensorcore_models.catalogue import canonical_device
    from tensorcore_models.libraries.profile_tables import MEASURED

    if library is None:
        return False
    (name, version), measured = resolve_library(library), MEASURED.get(canonical_device(gpu))
    return name == "cublaslt" and measured is not None and ".".join(version.split(".")[:2]) in measured.versions


def facts(recipe: libraries.Recipe, config: dict[str, str], recorded: str | None) -> dict:
    """Return the facts of a recipe as plain data for JSON."""
    return {
        "name": recipe.name,
        "engine": recipe.engine.label,
        "k": recipe.k,
        "source": recipe.source,
        "status": "predicted",
        "config": config,
        "recorded": recorded,
        "lost_k": [int(x) for x in recipe.lost],
        "chains": len(recipe.chains),
        "picture": recipe.picture(),
    }
