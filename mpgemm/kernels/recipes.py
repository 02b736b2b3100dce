"""Makes the row of a call's computation: a method's name, its options, and how range and failures are treated."""

import dataclasses
from functools import lru_cache

from mpgemm.kernels.forms import kernel_form, kernel_method
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.parts import parts_of

#: How a call treats the range of the words. "auto": rows and columns are scaled where the words are narrower than FP32.
SCALES = ("auto", "rows", "none")
DEFAULT = "ootomo_tf32"
#: Gradients of products whose A holds BF16 numbers: theirs do not, so both operands have as many words.
GRADIENTS = {"bf16xfp32x2": "bf16x3", "bf16xfp32x3": "bf16x6"}


@lru_cache(maxsize=256)
def recipe(
    method: str | RecoveryMethod = DEFAULT, scale: str = "auto", repair: bool = True, parts: int | str = "auto"
) -> RecoveryMethod:
    """Return the row of :func:`mpgemm.recovered_gemm` whose bits :func:`mpgemm.kernels.matmul` gives.

    Parameters
    ----------
    method : str or RecoveryMethod
        A name of :data:`mpgemm.kernels.forms.KERNELS`, with options behind a colon; or a row of your own.
    scale : {"auto", "rows", "none"}
        Whether rows of A and columns of B are scaled by powers of two first. auto: for words of fp16, whose range is narrow;
        words of bf16 and tf32 have FP32's.
    repair : bool
        Whether results that are not finite are computed again in FP32.
    parts : int or "auto"
        Parts of k that are added outside; auto: as many as n, k and the method ask for
        (:func:`mpgemm.recovery.parts.parts_of`).

    Returns
    -------
    RecoveryMethod
        ``recovered_gemm(a, b, method=recipe(...), engine=unit)`` predicts every bit.

    Raises
    ------
    ValueError
        If there is no such method, it has no kernel, or the scale is none of the three.
    """
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}, expected one of {', '.join(SCALES)}")
    row = _GIVEN[method] if method in _GIVEN else kernel_method(method)
    scaled = scale == "rows" or (scale == "auto" and row.formats[0] == "fp16")
    row = dataclasses.replace(
        row, parts=parts, repair="fp32" if repair else row.repair, equilibrate="rows" if scaled else row.equilibrate
    )
    kernel_form(row)
    return row


def recipe_for(n: int, k: int, method: str, scale: str, repair: bool) -> RecoveryMethod:
    """Return the row of a call whose B is k x n: as :func:`recipe`, with the number of its parts."""
    row = recipe(method, scale, repair)
    return recipe(method, scale, repair, parts_of(n, k, row))


#: Rows of users' own by the texts that stand for them: operations of torch take texts.
_GIVEN: dict[str, RecoveryMethod] = {}


def spelled(method: str | RecoveryMethod, options: dict) -> str:
    """Return a method and options of a call as one text; a row of one's own has a text from then on."""
    if isinstance(method, RecoveryMethod):
        row = kernel_method(method, **options)
        text = f"{row.name}#{hash(row):x}"
        if _GIVEN.setdefault(text, row) != row:
            raise ValueError(f"two rows of the name {row.name!r} have one hash: give one of them another name")
        return text
    if not isinstance(method, str):
        raise TypeError(
            f"a kernel's method is a name, with options behind a colon, or a RecoveryMethod; got {type(method).__name__}"
        )
    words = ",".join(f"{name}={value}" for name, value in sorted(options.items()))
    return f"{method}{',' if ':' in method else ':'}{words}" if words else method
