"""Makes the row of a call from a method's name, its options, scaling and repair."""

import dataclasses
from functools import lru_cache

from mpgemm.kernels.forms import kernel_form, kernel_method
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.parts import parts_of

#: Values of `scale`; "auto" scales rows and columns if the range of the words is narrower than FP32's.
SCALES = ("auto", "rows", "none")
DEFAULT = "ootomo_tf32"
#: Methods for the gradients of methods with a BF16 A: gradients have FP32 operands on both sides, so both have as many words.
GRADIENTS = {"bf16xfp32x2": "bf16x3", "bf16xfp32x3": "bf16x6"}


@lru_cache(maxsize=256)
def recipe(
    method: str | RecoveryMethod = DEFAULT, scale: str = "auto", repair: bool = True, parts: int | str = "auto"
) -> RecoveryMethod:
    """Return the method with which :func:`mpgemm.recovered_gemm` predicts the bits of :func:`mpgemm.kernels.matmul`.

    Parameters
    ----------
    method : str or RecoveryMethod
        Name in :data:`mpgemm.kernels.forms.KERNELS`, with options after a colon, or a method that you define.
    scale : {"auto", "rows", "none"}
        Whether rows of A and columns of B are scaled by powers of two first. "auto" scales for words of fp16, whose range is
        narrow; bf16 and tf32 have FP32's range.
    repair : bool
        Whether results that are not finite are computed again in FP32.
    parts : int or "auto"
        Number of parts of k that are added outside of the unit; "auto" means the number that n, k and the method determine
        (:func:`mpgemm.recovery.parts.parts_of`).

    Returns
    -------
    RecoveryMethod
        Method for which ``recovered_gemm(a, b, method=recipe(...), engine=unit)`` returns the same bits.

    Raises
    ------
    ValueError
        If the method does not exist or has no kernel, or `scale` has another value.
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
    """Return :func:`recipe` for a B of k x n, with its number of parts."""
    row = recipe(method, scale, repair)
    return recipe(method, scale, repair, parts_of(n, k, row))


#: Users' own rows by the texts that stand for them, because operations of torch take texts.
_GIVEN: dict[str, RecoveryMethod] = {}


def spelled(method: str | RecoveryMethod, options: dict) -> str:
    """Return a method and its options as one text; a user's own row is registered under its text."""
    if isinstance(method, RecoveryMethod):
        row = kernel_method(method, **options)
        text = f"{row.name}#{hash(row):x}"
        if _GIVEN.setdefault(text, row) != row:
            raise ValueError(
                f"two different methods have the name {row.name!r} and the same hash: give one of them another name"
            )
        return text
    if not isinstance(method, str):
        raise TypeError(
            f"method is a {type(method).__name__}, expected a name with options after a colon, or a RecoveryMethod"
        )
    words = ",".join(f"{name}={value}" for name, value in sorted(options.items()))
    return f"{method}{',' if ':' in method else ':'}{words}" if words else method
