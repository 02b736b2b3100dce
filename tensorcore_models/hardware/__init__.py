"""Runners for real hardware: single instructions of NVIDIA GPUs with raw bits in and out, and what users really call.

`engine` looks an engine up by name, as the command line's ``--engine`` takes it. Importing needs no GPU; using an engine
without one raises OSError or RuntimeError that says what is missing. ``python -m
tensorcore_models.hardware.campaign`` compares a GPU with its models. What has been run on what stands in docs/hardware.md.
"""

from .cuda.engines import CudaEngine, cuda_engine
from .libraries.engines import CupyMatmulEngine, TorchMatmulEngine
from .lookup import PREFIXES, engine

__all__ = ["PREFIXES", "CudaEngine", "CupyMatmulEngine", "TorchMatmulEngine", "cuda_engine", "engine"]
