"""Reads compiled kernels: it recognises the text and calls its reader."""

from os import PathLike
from pathlib import Path

from .amdgcn.code_object import MAGIC, read_code_object
from .amdgcn.parse import parse as parse_amdgcn
from .amdgcn.program import program_of
from .errors import KernelLimits
from .program import KernelProgram
from .ptx.program import read_text


def read(
    source: str | PathLike, entry: str | None = None, *, fmad: bool | None = None, limits: KernelLimits | None = None
) -> KernelProgram:
    """Return a compiled kernel, ready to run.

    Parameters
    ----------
    source : str or path
        PTX or AMDGCN assembly text, or the path of a file with such text or with an AMD code object (llvm-objdump disassembles
        it).
    entry : str, optional
        Name of the kernel; needed if the text has several.
    fmad : bool, optional
        Whether ptxas contracts PTX's products and additions that name no rounding, as it does by default
        (:mod:`tensorcore_models.compiled.ptx.assembled`). False means ``--fmad=false``.
    limits : KernelLimits, optional
        Limits of the text's size and of its runs.

    Returns
    -------
    KernelProgram
        A PTXProgram or an AMDProgram; its :meth:`~tensorcore_models.compiled.program.KernelProgram.run` runs it.

    Raises
    ------
    ValueError
        If the text is malformed (the message gives the line), too long, or has no such entry; or if `fmad` is given for AMD
        code, which no assembler contracts.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorcore_models import compiled
    >>> text = '''
    ... .version 8.0
    ... .target sm_80
    ... .address_size 64
    ... .visible .entry double(.param .u64 x) .reqntid 32
    ... { .reg .b32 %r<3>; .reg .b64 %rd<4>; .reg .f32 %f<3>;
    ...   ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    ...   ld.global.f32 %f1, [%rd3]; add.f32 %f2, %f1, %f1; st.global.f32 [%rd3], %f2; ret; }
    ... '''
    >>> x = np.arange(32, dtype=np.float32)
    >>> compiled.read(text).run([x], grid=1).assumptions
    ()
    >>> float(x[5])
    10.0
    """
    limits = limits or KernelLimits()
    if not isinstance(source, str) or not _is_text(source):
        data = Path(source).read_bytes()
        _check_length(len(data), limits)
        if data.startswith(MAGIC):
            _check_final(fmad)
            return program_of(*read_code_object(data), entry, limits)
        try:
            source = data.decode()
        except UnicodeDecodeError:
            raise ValueError(
                f"{source} is neither PTX or AMDGCN text nor an ELF code object: pass such a text or object"
            ) from None
    _check_length(len(source), limits)
    if ".amdgcn_target" in source:
        _check_final(fmad)
        return program_of(source, parse_amdgcn(source), entry, limits)
    return read_text(source, entry, limits, fmad=fmad is not False)


def _check_final(fmad: bool | None) -> None:
    if fmad is not None:
        raise ValueError("fmad is for PTX, which ptxas contracts, but this text is AMDGCN: leave fmad out")


def _check_length(length: int, limits: KernelLimits) -> None:
    if length > limits.text:
        raise ValueError(
            f"the text has {length} characters, above the limit of {limits.text}; set limits=KernelLimits(text=...)"
        )


def _is_text(source: str) -> bool:
    """Return whether a string is a program and no path."""
    return "\n" in source or ".version" in source or ".amdgcn_target" in source
