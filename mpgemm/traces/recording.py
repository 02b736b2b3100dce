"""Writes the tensors of a run: one .npy file for each, and an index with the order in which modules ran."""

import json
import re
from pathlib import Path
from types import TracebackType

import ml_dtypes
import numpy as np

import tensorcore_models as tcm
from tensorcore_models.files import atomic_writer, write_text

#: The index of a folder that this module wrote.
INDEX = "trace.json"
#: What a module's tensor is.
KINDS = ("input", "weight", "bias", "output", "input_scale", "weight_scale")


class TraceRecorder:
    """Records modules as they run.

    Parameters
    ----------
    folder : path
        Made where it is missing; must hold no trace yet.

    Raises
    ------
    ValueError
        If there is a trace.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder, TraceRecorder(folder) as trace:
    ...     trace.record("lm_head", input=np.ones((2, 3), np.float32), output=np.ones((2, 5), np.float32))
    ...     trace.next_step()
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        if (self.folder / INDEX).exists():
            raise ValueError(f"{self.folder} holds a trace already; name another folder")
        self.step = 0
        self._rows: list[dict] = []
        self._weights: dict[str, str] = {}

    def __enter__(self) -> "TraceRecorder":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def record(self, module: str, **tensors) -> None:
        """One module of the step.

        Parameters
        ----------
        module : str
            Its path in the model; numbered where it runs again in a step.
        **tensors : array_like
            "input" and "weight" as the module multiplies them (input @ weight.T), "bias", "output"; "input_scale" and
            "weight_scale" of quantised ones, of one rule of :func:`tensorcore_models.read_scales`, that of the weight
            transposed as the weight is: (n, 1), (n/128, k/128).

        Raises
        ------
        ValueError
            If a tensor has another name.
        """
        unknown = set(tensors) - set(KINDS)
        if unknown:
            raise ValueError(f"{module}: tensors are called {', '.join(KINDS)}, got {', '.join(sorted(unknown))}")
        times = sum(row["step"] == self.step and row["module"].partition("#")[0] == module for row in self._rows)
        name = module if not times else f"{module}#{times + 1}"
        files = {kind: self._written(name, kind, tcm.as_array(x, kind)) for kind, x in tensors.items() if x is not None}
        self._rows.append({"step": self.step, "module": name, "tensors": files})

    def next_step(self) -> None:
        """What is recorded from now on belongs to the next step."""
        self.step += 1

    def close(self) -> None:
        """Write the index."""
        write_text(self.folder / INDEX, json.dumps({"version": 1, "modules": self._rows}, indent=1) + "\n")

    def _written(self, module: str, kind: str, array: np.ndarray) -> dict:
        """The file's name and the type of its elements; a weight that is the same in every step is written once."""
        array = np.ascontiguousarray(array)
        named = array.dtype.name
        carrier = array.view(f"u{array.dtype.itemsize}") if array.dtype.type.__module__ == ml_dtypes.__name__ else array
        name = f"step{self.step}/{re.sub(r'[^A-Za-z0-9_.#-]', '_', module)}.{kind}.npy"
        known = self._weights.get(f"{module}.{kind}")
        if known is not None and np.array_equal(np.load(self.folder / known), carrier):
            return {"file": known, "type": named}
        with atomic_writer(self.folder / name) as stream:
            np.save(stream, carrier, allow_pickle=False)
        if kind in ("weight", "bias", "weight_scale"):
            self._weights[f"{module}.{kind}"] = name
        return {"file": name, "type": named}
