"""This module reads the configurations that cuBLASLt chose from a file that was recorded on the GPU.

`python -m tensorcore_models.hardware.libraries.cublaslt_heuristic` asks cuBLASLt on the GPU and writes such a JSON file:

    {"format": "mpgemm cublaslt recording 1", "device": "h100", "gpu": "NVIDIA H100 80GB HBM3", "cublaslt": "13.1.1",
     "workspace_bytes": 33554432,
     "records": [{"m": 1, "k": 4096, "n": 4096, "format": "fp16", "out_format": "fp16", "config": {"ALGO_ID": 66, ...}}]}

A `config` of null means that the library has no kernel.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cublaslt import platform_of
from .cublaslt_tables import FIELDS
from .profiled import configured
from .recipe import Recipe, Unknown

FORMAT = "mpgemm cublaslt recording 1"
_TOP = {"device": str, "cublaslt": str, "workspace_bytes": int, "records": list}
_RECORD = {"m": int, "k": int, "n": int, "format": str, "out_format": str}


@dataclass(frozen=True, order=True)
class Problem:
    """`Problem` is one product: its sizes, the format of the operands and the format of the output."""

    format: str
    out_format: str
    k: int
    n: int
    m: int

    def __str__(self) -> str:
        return f"m {self.m}, k {self.k}, n {self.n}, {self.format} to {self.out_format}"


@dataclass(frozen=True)
class Recording:
    """`Recording` holds the configurations that a library's heuristic chose.

    Attributes
    ----------
    device, version : str
        GPU and version of cuBLASLt; see :func:`~tensorcore_models.libraries.cublaslt`.
    workspace_bytes : int
        Workspace that the library was allowed to use; another size can change its choice.
    configs : dict
        Configuration of each problem, None if the library refused it.
    path : str
        File that the recording was read from.
    """

    device: str
    version: str
    workspace_bytes: int
    configs: dict[Problem, dict[str, int | None] | None]
    path: str = ""

    def problems(self) -> list[Problem]:
        """Return the recorded problems, sorted by format, k, n and m."""
        return sorted(self.configs)

    def recipe(self, problem: Problem) -> Recipe:
        """Return the recipe of a recorded problem.

        Raises
        ------
        Unknown
            If the problem was not recorded, the library refused it, or its kernel was not measured.
        """
        if problem not in self.configs:
            near = sorted(
                self.configs, key=lambda p: (p.format != problem.format, abs(p.k - problem.k), abs(p.m - problem.m))
            )
            raise Unknown(
                f"{self.path or 'the recording'} has no {problem}", field="m, k, n", known=map(str, near[:4]),
                advice="Record this shape on the GPU",
            )  # fmt: skip
        config = self.configs[problem]
        if config is None:
            raise Unknown(
                f"cuBLASLt refused {problem} when it was recorded", field="config", advice="Pad to a legal shape"
            )
        return configured(
            self.device, self.version, m=problem.m, k=problem.k, n=problem.n, format=problem.format,
            out_format=problem.out_format, config=config,
        )  # fmt: skip


def load_recording(path: str | os.PathLike, *, device: str | None = None, version: str | None = None) -> Recording:
    """Return a recording of cuBLASLt's choices, read from a file.

    Parameters
    ----------
    path : path
        File to read.
    device, version : str, optional
        Device and version that the recording must have.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is not a recording, or a field is missing or of the wrong type. Also if the device or version of the
        recording is not the requested one, or was not measured (:class:`Unknown`).
    """
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path} is not JSON ({error}): record the choices with tensorcore_models.hardware.libraries.cublaslt_heuristic"
        ) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        got = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise ValueError(
            f"{path}: format is {got!r}, expected {FORMAT!r}: record the choices with this version of mpgemm"
        )
    _check(data, _TOP, f"{path}")
    if device is not None and data["device"] != device:
        raise ValueError(
            f"{path} was recorded on device {data['device']!r}, expected {device!r}: record the choices on that GPU"
        )
    platform = platform_of(data["device"], data["cublaslt"])
    if version is not None and platform_of(data["device"], version) != platform:
        raise ValueError(
            f"{path} was recorded with cuBLASLt {data['cublaslt']}, expected {version}: record the choices with that version"
        )
    configs: dict[Problem, dict[str, int | None] | None] = {}
    for index, record in enumerate(data["records"]):
        _check(record, _RECORD, f"{path}: record {index}")
        config = record.get("config")
        if config is not None and (not isinstance(config, dict) or set(config) - set(FIELDS)):
            raise ValueError(
                f"{path}: record {index}: config is {config!r}, expected null or fields of {', '.join(FIELDS)}"
            )
        problem = Problem(record["format"], record["out_format"], record["k"], record["n"], record["m"])
        if configs.get(problem, config) != config:
            raise ValueError(f"{path}: record {index}: {problem} has two different configurations: remove one")
        configs[problem] = config
    return Recording(data["device"], data["cublaslt"], data["workspace_bytes"], configs, str(path))


def _check(data: Any, fields: dict[str, type], where: str) -> None:
    if not isinstance(data, dict):
        raise ValueError(f"{where}: expected an object with {', '.join(fields)}, got {type(data).__name__}")
    for name, kind in fields.items():
        value = data.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{where}: field {name} is {value!r}, expected {kind.__name__}")
