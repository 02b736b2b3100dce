"""Reading compiled kernels: which text it is, and which reader takes it."""

from os import PathLike
from pathlib import Path

from .errors import KernelLimits
from .ptx.program import PTXProgram, read_text


def read(source: str | PathLike, entry: str | None = None, *, limits: KernelLimits | None = None) -> PTXProgram:
    """A compiled kernel, ready to run.

    Parameters
    ----------
    source : str or path
        PTX text, or the path of a file of it.
    entry : str, optional
        Name of the kernel, where the text has several.
    limits : KernelLimits, optional
        How large the text may be, and how far its runs may go.

    Returns
    -------
    PTXProgram
        Its :meth:`~tensorcore_models.compiled.ptx.program.PTXProgram.run` runs it.

    Raises
    ------
    ValueError
        If the text is malformed (with its line), too long, or has no such entry.
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
    text = source if isinstance(source, str) and ("\n" in source or ".version" in source) else Path(source).read_text()
    if len(text) > limits.text:
        raise ValueError(
            f"the text has {len(text)} characters, above the limit of {limits.text}; set limits=KernelLimits(text=...)"
        )
    return read_text(text, entry, limits)
