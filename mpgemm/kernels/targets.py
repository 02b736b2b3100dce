"""Refuses methods whose words a target of :mod:`tensorcore_models.gpu.targets` cannot multiply."""

from mpgemm.kernels.forms import KERNELS, kernel_method
from tensorcore_models.gpu.targets import TARGETS, KernelTarget

#: Words that a target cannot multiply, and the reason.
MISSING = {
    ("gfx950", "tf32"): "CDNA4 has no xf32 instructions",
    ("gfx950", "s8"): "no machine here runs its text, so its products have not passed the gate",
}


def check_words(target: KernelTarget, fmt: str, method: str) -> None:
    """Refuse words that a target cannot multiply, with a ValueError.

    Parameters
    ----------
    target : KernelTarget
        Target.
    fmt, method : str
        Format of the words, and name of the method that has them.

    Raises
    ------
    ValueError
        If the target cannot multiply the words; the message names the reason, other methods and other targets.
    """
    reason = MISSING.get((target.name, fmt))
    if reason is None:
        return
    methods = {name: kernel_method(name).formats[0] for name in KERNELS}
    others = [name for name, words in methods.items() if (target.name, words) not in MISSING]
    targets = [name for name in TARGETS if (name, fmt) not in MISSING]
    raise ValueError(
        f"method {method} multiplies {fmt} words, which {target.name} cannot: {reason}. Take another method ({target.name} "
        f"runs {', '.join(others)}) or another target ({method} runs on {', '.join(targets)})"
    )
