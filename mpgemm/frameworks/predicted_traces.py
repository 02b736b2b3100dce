"""Predicts the outputs of recorded modules on a device from their recorded inputs, as a run to compare with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpgemm.frameworks.model_products import profiled_products
from mpgemm.frameworks.multiplier import Multiplier, Product, RecipeOf, recipe_values
from mpgemm.traces.reading import Trace
from tensorcore_models.catalogue import canonical_device
from tensorcore_models.formats.interop import format_of_dtype

#: Prefix of a predicted run on the command line: "predicted:DEVICE".
PREFIX = "predicted:"


@dataclass(frozen=True)
class PredictedTrace(Trace):
    """`PredictedTrace` holds a recorded run's modules with the outputs of a device for their inputs and weights."""

    recorded: Trace | None = None
    multiplier: Any = None

    def tensor(self, key: tuple[int, str], kind: str) -> np.ndarray | None:
        """Return a module's tensor, which is predicted for the output, else recorded."""
        assert self.recorded is not None
        return self._output(key) if kind == "output" and key in self.modules else self.recorded.tensor(key, kind)

    def _output(self, key: tuple[int, str]) -> np.ndarray:
        assert self.recorded is not None
        x, weight, bias, out = (self.recorded.tensor(key, kind) for kind in ("input", "weight", "bias", "output"))
        assert x is not None and weight is not None and out is not None
        rows, columns = x.reshape(-1, x.shape[-1]), np.ascontiguousarray(weight.T)
        a, b, d = (_format(each) for each in (rows, weight, out))
        product = Product("mm" if bias is None else "addmm", *rows.shape, len(weight), a, b, d)
        recipe = self.multiplier.recipe_for(product)
        # a bias is added to the sum before the only rounding
        if recipe is None:
            sums = self.multiplier.multiply(rows, columns, product)
        else:
            sums = recipe_values(recipe, rows, columns, d if bias is None else "fp32")
        found = sums if bias is None else sums + bias.astype(sums.dtype)
        return found.astype(out.dtype).reshape(out.shape)


def _format(x: np.ndarray) -> str:
    fmt = format_of_dtype(x.dtype)
    if fmt is None:
        raise ValueError(
            f"a recorded tensor holds {x.dtype}, expected a floating-point type such as float16, bfloat16 or float32: record "
            "the module in one of these types"
        )
    return fmt.name


def predicted_trace(recorded: Trace, device: str, profile: str | Path | None = None) -> PredictedTrace:
    """Return a run with the outputs of a device for the recorded inputs.

    Parameters
    ----------
    recorded : Trace
        Recorded run.
    device : str
        Device or architecture, such as "h100".
    profile : path, optional
        File of the kernels that ran (:func:`mpgemm.torch.record_kernels`). Without it, and for products that it lacks, one
        chain over k is assumed.

    Returns
    -------
    PredictedTrace
        Predicted run; its `left_out` names modules with scales, or without a recorded input, weight or output.

    Raises
    ------
    ValueError
        If the device does not exist, or no module can be predicted.
    """
    recipe: RecipeOf | None = None if profile is None else profiled_products(profile)
    modules, left_out = {}, list(recorded.left_out)
    for key, kinds in recorded.modules.items():
        if {"input", "weight", "output"} <= kinds.keys() and not {"input_scale", "weight_scale"} & kinds.keys():
            modules[key] = kinds
        else:
            left_out.append(f"{key[1]}: not predicted, because it has scales, or lacks a recorded input or weight")
    if not modules:
        raise ValueError(
            f"{recorded.folder} has no module without scales whose input, weight and output were recorded, so no module can be "
            "predicted: record such modules"
        )
    name = canonical_device(device)
    assumed = "one chain over k" if profile is None else f"kernels of {profile}"
    folder = Path(f"{PREFIX}{name} ({assumed})")
    return PredictedTrace(folder, modules, tuple(left_out), recorded, Multiplier(name, recipe=recipe))
