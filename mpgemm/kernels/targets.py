"""Which words each target of :mod:`tensorcore_models.gpu.targets` multiplies, and which methods it does not run."""

from mpgemm.kernels.forms import KERNELS, kernel_method
from tensorcore_models.gpu.targets import TARGETS, KernelTarget

#: Words that a target's units do not multiply, or that Triton does not give them, and why.
MISSING = {
    ("gfx950", "tf32"): "CDNA4 has no xf32 instructions",
    ("gfx950", "s8"): "its int8 products have not passed the gate",
}


def check_words(target: KernelTarget, fmt: str, method: str) -> None:
    """Refuse words that a target does not multiply.

    Parameters
    ----------
    target : KernelTarget
    fmt, method : str
        Format of the words, and whose they are.

    Raises
    ------
    ValueError
        With the reason, the methods that the target runs, and the targets that run the method.
    """
    reason = MISSING.get((target.name, fmt))
    if reason is None:
        return
    methods = {name: kernel_method(name).formats[0] for name in KERNELS}
    others = [name for name, words in methods.items() if (target.name, words) not in MISSING]
    targets = [name for name in TARGETS if (name, fmt) not in MISSING]
    raise ValueError(
        f"{method} multiplies {fmt} words, {target.name} does not: {reason}. {target.name} runs {', '.join(others)}; "
        f"{method} runs on {', '.join(targets)}"
    )
