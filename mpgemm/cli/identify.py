"""`mpgemm identify` finds the specification of a matrix unit, given as a black box, and shows the evidence."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorcore_models as tcm
from mpgemm.cli.common.option_values import SECONDS_EACH, SECONDS_TOTAL, SOLVERS, SUITES
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted
from tensorcore_models import probing
from tensorcore_models.files import atomic_writer
from tensorcore_models.probing import formal
from tensorcore_models.probing.identify.limits import EFFORTS

QUESTION = "look into a unit"
SUMMARY = "find what an unknown matrix unit computes, from products that it returns"
EXAMPLES = (
    ("--instruction volta:mma.m8n8k4.f32.f16.f16.f32", "a catalogued unit as a black box"),
    ("--engine cpu:vdpbf16ps --html unit.html", "this machine's own unit, and an HTML page with the evidence"),
    ("--python my_model:dot --a-format bf16 --d-format fp32 --k 8", "a function f(a, b, c) of your own"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    box = parser.add_mutually_exclusive_group(required=True)
    add = box.add_argument
    add(
        "--instruction",
        metavar="ARCH:NAME",
        help="identify an instruction of the catalogue from the outputs of its model",
    )
    add(
        "--python",
        metavar="MODULE:FUNCTION",
        help="identify a function f(a, b, c) -> d of arrays (m, k), (k, n), (m, n); it gets copies, which it may overwrite",
    )
    add(
        "--engine",
        metavar="NAME",
        help="identify hardware by the name of its instruction: cuda:..., cpu:..., "
        "cpu-emulated:..., torch:... (mpgemm info shows what this machine has)",
    )
    add = parser.add_argument
    for name in "abcd":
        add(f"--{name}-format", metavar="FORMAT", help=f"format of {name} in f(a, b, c) -> d, for --python")
    add("--k", type=int, help="length of the dot products that one call computes, for --python")
    add("--scale-format", metavar="FORMAT", help="format of the block scales, for --python with --raw")
    add("--block-size", type=int, help="number of products that share a scale, for --python with --raw")
    add("--raw", action="store_true", help="the function of --python takes and returns encodings (default: values)")
    add(
        "--vectors",
        type=int,
        default=1_000_000,
        help="number of random inputs on which the identified specification is compared with the unit (default "
        "%(default)s)",
    )
    add("--seed", type=int, default=0, help="seed of all random choices (default 0)")
    add(
        "--effort", choices=tuple(EFFORTS), default="normal",
        help="length of the search before the unit counts as outside of the known families of arithmetic "
        "(default normal): quick combines no specifications, thorough takes up to about three times as long "
        "as normal",
    )  # fmt: skip
    add("--quiet", action="store_true", help="do not show progress on the terminal")
    add("--suite", choices=SUITES, help="first run a published suite of tests on the unit")
    _add_solvers(parser)
    add("--json", action="store_true", help="print the result as JSON")
    add("--html", metavar="FILE", help="write an HTML page with all evidence")


def _add_solvers(parser: argparse.ArgumentParser) -> None:
    """Add the options of SMT solvers."""
    add = parser.add_argument
    add(
        "--solver", nargs="*", choices=SOLVERS, metavar="NAME",
        help="prove with SMT solvers whether two models that agree on all tested inputs are equal. Solvers: "
        f"{', '.join(SOLVERS)} (without names: all that are installed; default: no proof)",
    )  # fmt: skip
    add(
        "--solver-timeout",
        type=float,
        default=SECONDS_EACH,
        help="time limit of each solver call in seconds (default %(default)s)",
    )
    add(
        "--solver-total",
        type=float,
        default=SECONDS_TOTAL,
        help="time limit of all solver calls together in seconds (default %(default)s)",
    )


def run(args: argparse.Namespace) -> Output:
    """Carry out the command; the exit status is 0 if the unit was identified, 1 if it is outside of the families or faulty.

    Raises ValueError, TypeError, OSError, RuntimeError if the unit cannot be opened, or --python lacks an option it needs.
    """
    with _at_work():
        unit, interface = _box(args)
    return _identified(args, unit, interface)


@contextlib.contextmanager
def _at_work() -> Iterator[None]:
    """Run a user's code so that its output goes to standard error. Raises ValueError if the code ends the program."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except SystemExit as left:
        raise ValueError(f"the function raised SystemExit ({left}), expected a result: remove the exit") from None


def _identified(args: argparse.Namespace, unit: Any, interface: dict[str, Any]) -> Output:
    """Identify the unit and return the output."""
    from tensorcore_models.probing.identify.page import page

    if args.suite:
        if not hasattr(unit, "formats"):
            unit, interface = tcm.as_engine(unit, **_values_only(args, interface)), {}
        with _at_work():
            found = probing.suites.run(args.suite, unit)
        print(found, file=sys.stderr if args.json else sys.stdout)
    sources = _solvers(args)
    with _at_work():
        result = probing.identify(
            unit, vectors=args.vectors, seed=args.seed, sources=sources, effort=args.effort,
            progress=_progress(args.quiet), **interface,
        )  # fmt: skip
    if args.html:
        with atomic_writer(args.html) as stream:
            stream.write(page(result).encode())
    return Output(result.to_dict(), _lines(result, args.suite), status=int(result.engine is None))


def _lines(result: probing.Identification, suite: str | None) -> Iterator[str]:
    if suite and result.engine is not None:
        yield from map(fitted, _misreadings(suite, result.engine))
    yield fitted(str(result))
    if result.engine is not None:
        yield f"row to paste:\n{result.catalogue_row()}"


def _misreadings(suite: str, unit: Any) -> Iterator[str]:
    """Yield the suite's verdicts that contradict the identified arithmetic, where the suite's features describe such a unit."""
    try:
        found = probing.suites.misread(suite, unit)
    except ValueError:
        return
    for row, deserved in found:
        yield f"{suite} misreads this unit: {row.name}: {row.verdict}; it is: {deserved}"


def _solvers(args: argparse.Namespace) -> tuple[probing.Solver, ...]:
    """Return the solvers that --solver names, none without the option."""
    if args.solver is None:
        return ()
    try:
        return (probing.Solver(args.solver_timeout, args.solver_total, backends=args.solver or None),)
    except formal.NoSolver as error:
        raise ValueError(str(error)) from None


def _progress(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints progress and elapsed time if standard error is a terminal.

    It shows no remaining time, because that depends on the unit's answers.
    """
    if quiet or not sys.stderr.isatty():
        return lambda line: None
    start = time.monotonic()
    return lambda line: print(f"{line}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def _box(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Return the unit to identify, and the formats and sizes that a function of --python needs."""
    names = ("a_format", "b_format", "c_format", "d_format", "k", "scale_format", "block_size")
    told = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.raw:
        told["raw"] = True
    if args.python is None:
        if told:
            given = ", ".join("--" + name.replace("_", "-") for name in told)
            raise ValueError(
                f"got {given} without --python, but an instruction or engine states these facts itself: leave "
                f"{given} out"
            )
        if args.instruction is not None:
            return tcm.get_instruction(args.instruction), {}
        return _hardware(args.engine), {}
    return _function(args.python), told


def _hardware(name: str) -> Any:
    from tensorcore_models import hardware

    engine = hardware.engine(name)
    require = getattr(engine, "require", None)
    if require is not None:
        try:
            require()
        except RuntimeError as error:
            raise ValueError(str(error)) from error
    return engine


def _function(name: str) -> Any:
    """Return the function that MODULE:FUNCTION names; the module is also looked for in the current folder."""
    module_name, separator, attribute = name.partition(":")
    if not separator or not module_name or not attribute:
        raise ValueError(f"--python got {name!r}, expected MODULE:FUNCTION")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(
            f"--python {name}: the module {module_name} cannot be imported ({error}): give a module "
            "of this folder or an installed one"
        ) from error
    if not hasattr(module, attribute):
        raise ValueError(f"--python {name}: module {module_name} has no {attribute}: name a function of this module")
    return getattr(module, attribute)


def _values_only(args: argparse.Namespace, told: dict[str, Any]) -> dict[str, Any]:
    """Return the formats and k that make a function on values an engine, which suites need. Raises ValueError without them."""
    if args.raw or args.a_format is None or args.d_format is None or args.k is None:
        options = {"--a-format": args.a_format, "--d-format": args.d_format, "--k": args.k, "--raw": args.raw}
        given = [name for name, value in options.items() if value]
        raise ValueError(
            "--suite runs on a function of --python only with --a-format, --d-format and --k and without --raw, "
            f"got {', '.join(given) or 'none of these'}: change these options, or leave --suite out"
        )
    return {name: value for name, value in told.items() if name not in ("scale_format", "block_size")}
