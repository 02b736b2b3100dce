"""Compiles launches of Triton kernels for a target, without a device."""

import hashlib
import importlib
import importlib.util
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .launches import DescribedArray, TritonLaunch, View
from .targets import KernelTarget

#: Version of Triton whose compiled text the whole-kernel gate has run.
TESTED_TRITON = "3.9.0"
#: Oldest version of Triton with the Gluon for which the kernels of units are written.
LEAST_TRITON = (3, 9)
_POINTERS = {
    "fp32": "*fp32",
    "fp16": "*fp16",
    "bf16": "*bf16",
    "s32": "*i32",
    "s8": "*i8",
    "s16": "*i16",
    "fp64": "*fp64",
    "s64": "*i64",
}


@cache
def triton_module():
    """Return the module triton; warn once if it is not the tested version.

    Raises
    ------
    ImportError
        If the extra is not installed.
    """
    try:
        triton = importlib.import_module("triton")
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise ImportError("this needs triton, which is not installed: pip install 'mpgemm[kernels]'") from None
    if triton.__version__ != TESTED_TRITON:
        warnings.warn(
            f"Triton is {triton.__version__}, but the bits of kernels were checked with {TESTED_TRITON}: another compiler "
            "may fold additions or change orders; run python -m mpgemm.kernels.whole_gate to check it",
            stacklevel=2,
        )
    return triton


@dataclass(frozen=True)
class TargetKernel:
    """`TargetKernel` is a launch compiled for a target.

    Attributes
    ----------
    assembly : str
        PTX, or AMD's assembly.
    binary : bytes or None
        cubin or hsaco, if Triton's assembler was available.
    name : str
        Name of the entry.
    parameters : tuple of str
        Names of the arguments that are passed, in order; the other arguments are constants.
    shared : int
        Bytes of shared memory.
    target : KernelTarget
    launch : TritonLaunch
    types : mapping
        Type of each parameter, as Triton names it.
    fixed : mapping
        Arguments that are constants of the text: those that the launch leaves out, and those that are 1.
    multiples : tuple of str
        Parameters that the text assumes to be multiples of 16; other values give wrong results.
    boxes : tuple of mapping
        Form in which the text takes the descriptor of each
        :class:`~tensorcore_models.gpu.launches.DescribedArray`: `block_size` and `swizzle`.
    """

    assembly: str
    binary: bytes | None
    name: str
    parameters: tuple[str, ...]
    shared: int
    target: KernelTarget
    launch: TritonLaunch
    types: Mapping[str, str]
    fixed: Mapping[str, Any]
    multiples: tuple[str, ...]
    boxes: tuple[Mapping[str, Any], ...] = ()

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the assembly."""
        return hashlib.sha256(self.assembly.encode()).hexdigest()


def specialised(launch: TritonLaunch, names, aligned: bool, whatever=()) -> tuple[dict[str, str], dict, list[str]]:
    """Return the type of each argument, the values of constant ones, and the ones known to be multiples of 16.

    Arguments are specialised as Triton's own launches do: None and 1 are constants, numbers below 2^31 have 32 bits. `launch`
    is the launch; `names` are its arguments in order; `aligned` says whether addresses are multiples of 16 bytes and numbers
    that are multiples of 16 are known to be; `whatever` names the numbers that stay arguments whatever their value.
    """
    types, constants, multiples = {}, {}, []
    for name in names:
        if name in launch.constants:
            types[name], constants[name] = "constexpr", launch.constants[name]
            continue
        value = launch.arguments[name]
        if value is None or (isinstance(value, int) and value == 1 and name not in whatever):
            types[name], constants[name] = "constexpr", value
        elif isinstance(value, DescribedArray):
            types[name] = f"tensordesc<{_POINTERS[value.type][1:]}[{value.box[0]}, {value.box[1]}]>"
        elif isinstance(value, View):
            types[name] = _POINTERS[value.type]
            multiples += [name] if aligned else []
        elif isinstance(value, float):
            types[name] = "fp32"
        else:
            types[name] = "i32" if -(1 << 31) <= value < 1 << 31 else "i64"
            multiples += [name] if aligned and value % 16 == 0 and name not in whatever else []
    return types, constants, multiples


def unspecialised(function: Any) -> set[str]:
    """Return the arguments of a kernel that never become constants."""
    return {p.name for p in function.params if p.do_not_specialize}


def compile_function(
    function: Any, launch: TritonLaunch, target: KernelTarget, *, aligned: bool = False
) -> TargetKernel:
    """Return a launch compiled for a target.

    Parameters
    ----------
    function : triton.JITFunction
        Kernel function, in Triton or in Gluon.
    launch : TritonLaunch
    target : KernelTarget
    aligned : bool
        Whether addresses are multiples of 16 bytes, as those of tensors are, and the text may assume that numbers of the
        launch which are multiples of 16 always are, as in Triton's own launches.

    Raises
    ------
    ImportError
        If Triton is not installed.
    ValueError
        If Triton cannot compile the launch; the message has its reason.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile
    from triton.experimental.gluon._runtime import GluonASTSource

    types, constants, multiples = specialised(launch, function.arg_names, aligned, unspecialised(function))
    hints = {(function.arg_names.index(name),): [["tt.divisibility", 16]] for name in multiples}
    source = GluonASTSource if function.is_gluon() else ASTSource
    options = {**launch.options, "num_warps": launch.warps, "num_stages": launch.stages}
    try:
        made = compile(
            source(function, types, constants, hints),
            target=GPUTarget(target.backend, target.arch, target.warp), options=options,
        )  # fmt: skip
    except Exception as error:  # Triton's passes raise errors of many types
        reason: BaseException = error
        while reason.__cause__ is not None:
            reason = reason.__cause__
        raise ValueError(f"Triton cannot compile {launch.function} for {target.name}: {reason}") from error
    text, binary = ("ptx", "cubin") if target.backend == "cuda" else ("amdgcn", "hsaco")
    passed = tuple(name for name in function.arg_names if types[name] != "constexpr")
    return TargetKernel(
        made.asm[text], made.asm.get(binary), made.metadata.name, passed, made.metadata.shared, target, launch,
        {name: types[name] for name in passed},
        {name: value for name, value in constants.items() if name in launch.arguments}, tuple(multiples),
        tuple(getattr(made.metadata, "tensordesc_meta", None) or ()),
    )  # fmt: skip


def unit_kernel(name: str) -> Any:
    """Return the kernel of this package with the given name.

    Raises
    ------
    ImportError
        If Triton is not installed or too old.
    """
    version = importlib.import_module("triton").__version__ if importlib.util.find_spec("triton") else None
    if version is not None and tuple(map(int, version.split(".")[:2])) < LEAST_TRITON:
        least = ".".join(map(str, LEAST_TRITON))
        raise ImportError(
            f"Triton is {version}, but units on a GPU need {least} or newer: pip install 'triton>={least}'"
        )
    triton_module()
    from . import (
        source_aligned,
        source_chains,
        source_fused,
        source_groups,
        source_pack,
        source_phases,
        source_program,
    )

    modules = (
        source_pack, source_fused, source_chains, source_groups, source_phases, source_aligned, source_program,
    )  # fmt: skip
    return next(getattr(module, name) for module in modules if hasattr(module, name))
