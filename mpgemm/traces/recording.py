"""This module writes the tensors of a run: one .npy file for each, and an index with the order of the modules."""

import itertools
import json
import re
from pathlib import Path
from types import TracebackType

import ml_dtypes
import numpy as np

import tensorcore_models as tcm
from tensorcore_models.files import atomic_writer, write_text

#: Name of the index in a folder that this module wrote, and version of its fields.
INDEX = "trace.json"
VERSION = 1
#: Kinds of a module's tensors.
KINDS = ("input", "weight", "bias", "output", "input_scale", "weight_scale")


class TraceRecorder:
    """`TraceRecorder` writes the tensors of a model's modules to a folder as they run.

    Parameters
    ----------
    folder : path
        Folder of the trace; it is made if missing, and must hold no trace.

    Raises
    ------
    ValueError
        If the folder holds a trace.

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
        #: Products that were not recorded, as "module: operation", with their counts.
        self.left_out: dict[str, int] = {}
        self._rows: list[dict] = []
        self._weights: dict[tuple[str, str], str] = {}
        self._files: set[str] = set()
        self._runs: dict[str, int] = {}

    def __enter__(self) -> "TraceRecorder":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def record(self, module: str, **tensors) -> None:
        """Record one module of the current step.

        Parameters
        ----------
        module : str
            Path of the module in the model. The second run of a module in a step is named PATH#2, and so on; a "#" of the path
            itself is doubled.
        **tensors : array_like
            The tensors `input` and `weight`, which the module multiplies as input @ weight.T, and `bias` and `output`.
            Quantised modules also have `input_scale` and `weight_scale`, with shapes that
            :func:`tensorcore_models.read_scales` knows. `weight_scale` is transposed like the weight: (n, 1) or
            (n/128, k/128), for example.

        Raises
        ------
        ValueError
            If a keyword is none of these six names.
        """
        unknown = set(tensors) - set(KINDS)
        if unknown:
            raise ValueError(
                f"{module}: got tensors named {', '.join(sorted(unknown))}, expected names from {', '.join(KINDS)}"
            )
        name = self._run_name(module.replace("#", "##"))
        files = {kind: self._written(name, kind, tcm.as_array(x, kind)) for kind, x in tensors.items() if x is not None}
        self._rows.append({"step": self.step, "module": name, "tensors": files})

    def leave_out(self, what: str) -> None:
        """Count a product that was not recorded, under the name "module: operation"."""
        self.left_out[what] = self.left_out.get(what, 0) + 1

    def next_step(self) -> None:
        """Begin the next step; modules recorded from now on belong to it."""
        self.step += 1
        self._runs = {}

    def close(self) -> None:
        """Write the index of the trace to its folder."""
        index = {"version": VERSION, "modules": self._rows, "left_out": self.left_out}
        write_text(self.folder / INDEX, json.dumps(index, indent=1) + "\n")

    def _run_name(self, module: str) -> str:
        """Return the module's name, numbered from its second run in the step on."""
        self._runs[module] = times = self._runs.get(module, 0) + 1
        return module if times == 1 else f"{module}#{times}"

    def _written(self, module: str, kind: str, array: np.ndarray) -> dict:
        """Return the file's name and the element type; a weight with the same bits in every step is written once."""
        array = np.asarray(array, order="C")
        named = array.dtype.name
        carrier = array.view(f"u{array.dtype.itemsize}") if array.dtype.type.__module__ == ml_dtypes.__name__ else array
        known = self._weights.get((module, kind))
        if known is not None and _same_bits(np.load(self.folder / known), carrier):
            return {"file": known, "type": named}
        name = self._free_file(module, kind)
        with atomic_writer(self.folder / name) as stream:
            np.save(stream, carrier, allow_pickle=False)
        if kind in ("weight", "bias", "weight_scale"):
            self._weights[module, kind] = name
        return {"file": name, "type": named}

    def _free_file(self, module: str, kind: str) -> str:
        """Return a file name that is unique in this trace, also on systems that ignore case."""
        stem = f"step{self.step}/{re.sub(r'[^A-Za-z0-9_.#-]', '_', module)}"
        stems = itertools.chain((stem,), (f"{stem}~{i}" for i in itertools.count(2)))
        name = next(n for s in stems if (n := f"{s}.{kind}.npy").lower() not in self._files)
        self._files.add(name.lower())
        return name


def _same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether two arrays have equal bits, including signs of zeros and NaNs."""
    return (x.dtype, x.shape) == (y.dtype, y.shape) and x.tobytes() == y.tobytes()
