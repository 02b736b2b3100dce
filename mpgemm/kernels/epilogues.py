"""Defines the epilogue of a kernel (bias, activation, rounding to the result's type), and computes it with NumPy.

An activation from CUDA's library runs the instructions by which torch computes it on NVIDIA's GPUs
(:mod:`tensorcore_models.functions.library`), printed as PTX; relu is x where x > 0, NaN where x is NaN, and +0 elsewhere.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorcore_models as tcm
from tensorcore_models.functions.ptx_text import ptx_text
from tensorcore_models.functions.sequences import parse
from tensorcore_models.gpu.targets import KernelTarget

#: Activations, and the names of the functions of CUDA's library that compute them.
ACTIVATIONS: dict[str, str | None] = {
    "relu": None, "silu": "torch.silu", "gelu": "torch.gelu", "gelu_tanh": "torch.gelu_tanh",
}  # fmt: skip
BIASES = ("row", "column")
RESULTS = ("fp32", "fp16", "bf16")


@dataclass(frozen=True)
class FusedEpilogue:
    """`FusedEpilogue` computes RN(activation(RN(value + bias))) from value = alpha A B + beta C.

    Attributes
    ----------
    bias : {None, "row", "column"}
        Whether the bias has a number for each row, for each column, or there is no bias.
    activation : {None, "relu", "silu", "gelu", "gelu_tanh"}
        Function of the sum.
    result : {"fp32", "fp16", "bf16"}
        Type to which the result is rounded, to nearest even.

    Raises
    ------
    ValueError
        If an attribute has another value.
    """

    bias: str | None = None
    activation: str | None = None
    result: str = "fp32"

    def __post_init__(self):
        if self.bias is not None and self.bias not in BIASES:
            raise ValueError(f"bias is {self.bias!r}, expected 'row' (one number for each row), 'column', or None")
        if self.activation is not None and self.activation not in ACTIVATIONS:
            raise ValueError(f"activation is {self.activation!r}, expected one of {', '.join(ACTIVATIONS)}, or None")
        if self.result not in RESULTS:
            raise ValueError(f"the result format is {self.result!r}, expected one of {', '.join(RESULTS)}")

    def __bool__(self) -> bool:
        return self != FusedEpilogue()

    def __str__(self) -> str:
        return f"{self.bias or ''},{self.activation or ''},{self.result}"

    @staticmethod
    def read(text: str) -> "FusedEpilogue":
        """Return the epilogue from its text, the inverse of ``str``."""
        bias, activation, result = text.split(",")
        return FusedEpilogue(bias or None, activation or None, result)

    def constants(self) -> dict[str, Any]:
        """Return the kernel's constants for this epilogue."""
        name = ACTIVATIONS.get(self.activation or "")
        return {"BIAS": self.bias, "ACTIVATION": self.activation if name is None else ptx_text(_sequence(name))}

    def check_target(self, target: KernelTarget) -> None:
        """Refuse an activation that a target computes with other instructions, with a ValueError."""
        if target.backend != "cuda" and self.activation not in (None, "relu"):
            raise ValueError(
                f"activation {self.activation!r} needs instructions of NVIDIA's GPUs, which {target.name} lacks: take 'relu', "
                "or leave activation out and apply torch's function to the result"
            )

    def of(self, value: np.ndarray, bias: np.ndarray | None = None, unit: str = "hopper") -> np.ndarray:
        """Compute the epilogue with NumPy and the functions of :mod:`tensorcore_models`.

        Parameters
        ----------
        value : ndarray of float32, shape (m, n)
            alpha A B + beta C.
        bias : ndarray of float32, shape (m,) or (n,)
            Numbers of the rows or columns.
        unit : str
            Architecture whose functions are computed.

        Returns
        -------
        ndarray of float32, shape (m, n)
            Values that the result's type holds.

        Raises
        ------
        ValueError
            If the activation is not known for the unit.
        """
        if self.bias is not None:
            assert bias is not None
            with np.errstate(all="ignore"):
                value = value + (bias[:, None] if self.bias == "row" else bias)
        if self.activation == "relu":
            value = np.where(value <= 0, np.float32(0), value)
        elif self.activation is not None:
            function = tcm.get_function(unit, ACTIVATIONS[self.activation])
            value = function.bits(np.ascontiguousarray(value).view(np.uint32)).view(np.float32)
        if self.result == "fp32":
            return value
        return np.asarray(tcm.round_to(value, self.result), np.float32)


def _sequence(name: str):
    return parse(tcm.get_function("hopper", name).row.program)


#: Epilogue that changes nothing.
PLAIN = FusedEpilogue()
