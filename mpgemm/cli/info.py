"""`mpgemm info` shows versions, kernels, instruction sets, and the engines of this machine."""

import argparse
import platform
from collections.abc import Iterator

import tensorcore_models as tcm
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted

QUESTION = "keep results, check the installation"
SUMMARY = "show versions, kernels, instruction sets and available engines"
EXAMPLES = (("", "versions, kernels, instruction sets, engines"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


#: Packages that this package needs or that its extras install.
DISTRIBUTIONS = (
    "numpy", "ml_dtypes", "mpmath", "matplotlib", "rich", "safetensors", "distributed", "cupy-cuda12x", "torch",
)  # fmt: skip


def run(args: argparse.Namespace) -> Output:
    """Carry out the command."""
    facts = gather()
    return Output(facts, _lines(facts))


def _lines(facts: dict[str, dict]) -> Iterator[str]:
    for group, members in facts.items():
        yield group
        width = max(map(len, members), default=0)
        for name, value in members.items():
            yield fitted(f"  {name:{width}}  {', '.join(value) if isinstance(value, list) else value}")


def gather() -> dict[str, dict]:
    """Return the facts that the command shows, by groups."""
    from mpgemm.reporting.provenance import environment
    from tensorcore_models.cpu_units.units import available, processor

    here = environment()
    return {
        "versions": {
            "mpgemm": here["mpgemm"],
            "code": here["code"][:16],
            "python": f"{platform.python_implementation()} {here['python']}",
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "blas of numpy": here["blas"],
            **{name: _version(name) for name in DISTRIBUTIONS},
        },
        "kernels": {
            "instruction sets": list(tcm.available_isas()),
            "in use": tcm.active_isa(),
            "threads": tcm.get_num_threads(),
        },
        "engines": {
            "catalogue": f"{len(tcm.list_instructions())} instructions of {len(tcm.architectures())} architectures",
            "CPU": processor(),
            "matrix instructions of the CPU": [row.name for row in available()] or "none",
            "GPU": _gpu(),
        },
    }


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _gpu() -> str:
    from tensorcore_models.hardware.cuda.device import CudaDevice

    try:
        device = CudaDevice()
    except (OSError, RuntimeError, ValueError) as error:
        return f"none ({str(error).splitlines()[0]})"
    return f"{device.name} ({device.arch}), driver {device.driver}"
