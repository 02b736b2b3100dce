"""This module builds tile schedules: it places a kernel's class on a chip and checks the result.

Every schedule on a chip is built here (:func:`build_schedule`), also one that differs from another in a few fields
(:func:`variant`). :mod:`ascend.tile_schedule` defines schedules; a kernel's class chooses the options that the caller
leaves open.
"""

from dataclasses import fields
from typing import Any

from ascend.blocking import Blocking
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.kernels.base import Kernel
from ascend.kernels.grid import GridKernel
from ascend.kernels.options import BlockedProduct
from ascend.kernels.paper import PaperKernel
from ascend.kernels.vector import VectorKernel
from ascend.schedule_options import ScheduleOptions, options_of, refuse_unknown
from ascend.tile_schedule import LARGEST_SIZE
from tensorcore_models.integers import integer_arguments

#: Every kernel by its name.
KERNELS: dict[str, type[Kernel]] = {each.kernel: each for each in (PaperKernel, GridKernel, VectorKernel)}
#: Limit on the row or column blocks; more are taken for a mistake: half a million elements a core in blocks of 16.
MOST_BLOCKS = 2**20
#: Options that the kernel chooses anew if another field changes.
FOLLOWS_THE_BLOCK = ("n_fused", "depth")
FOLLOWS_THE_KERNEL = ("grid", "resident", "swizzle", "balanced")


@integer_arguments("m", "k", "n", "cores")
def build_schedule(
    m: int,
    k: int,
    n: int,
    chip: Chip | str,
    blocking: Blocking,
    *,
    kernel: str = "paper",
    cores: int | None = None,
    **options: Any,
) -> Kernel:
    """Return the schedule of C = A B (A m x k, B k x n) in blocks on a chip.

    Parameters
    ----------
    m, k, n : int
        Sizes, at least 1.
    chip : Chip or str
        A chip or its name.
    blocking : Blocking
        Sizes of the blocks.
    kernel : {"paper", "grid", "vector"}
        Kernel of the schedule: "paper" is the kernel of Xue et al. (Algorithm 1), "grid" divides C and k among cores in other
        ways, and "vector" computes on the vector units. A grid or a split of k needs "grid" or "vector". A swizzle, or a
        resident operand other than A, needs "grid".
    cores : int, optional
        Number of cores of the chip that are used; all by default.
    **options
        Options of :class:`ascend.schedule_options.ScheduleOptions`: terms, mode, operand, layout, grid, resident, ...

    Raises
    ------
    ValueError
        If a size is not positive, an option is impossible, or a buffer would overflow; the message gives the buffer, its
        bytes and its limit.
    TypeError
        If `blocking` is not a Blocking, `chip` not a chip, or an option unknown.
    """
    if not isinstance(blocking, Blocking) or not isinstance(chip, Chip | str):
        raise TypeError(
            "build_schedule(m, k, n, chip, blocking): expected a Chip or its name and a Blocking, got "
            f"{type(chip).__name__} and {type(blocking).__name__}"
        )
    refuse_unknown("build_schedule", options, ("kernel", "cores", *options_of(ScheduleOptions)))
    chip = _with_cores(get_chip(chip), cores)
    _check_sizes(m, k, n, blocking)
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {kernel!r}")
    asked = ScheduleOptions(**options)
    if KERNELS[kernel].on_cube:
        chip.cube_step_k(asked.operand)
    asked.check_chip(chip)
    if asked.template == "norm" and (kernel != "grid" or (asked.resident or "none") != "none"):
        raise ValueError(
            f"template norm streams both operands of a grid kernel, got kernel={kernel!r} and resident="
            f"{asked.resident or 'none'!r}: use kernel='grid', resident='none'"
        )
    return _checked_buffers(KERNELS[kernel].placed(BlockedProduct(int(m), int(k), int(n), chip, blocking), asked))


def _with_cores(chip: Chip, cores: int | None) -> Chip:
    if cores is None:
        return chip
    if not 1 <= cores <= chip.cores:
        raise ValueError(f"cores must lie between 1 and the {chip.cores} of {chip.name}, got {cores}")
    return chip.replace(cores=cores, hbm_bytes_per_second=chip.hbm_bytes_per_second)


def _check_sizes(m: int, k: int, n: int, blocking: Blocking) -> None:
    for name, size, step in (("m", m, blocking.bm), ("k", k, blocking.bk), ("n", n, blocking.bn)):
        if not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"{name} must lie between 1 and {LARGEST_SIZE}, got {size}")
        if -(-size // step) > MOST_BLOCKS:
            raise ValueError(
                f"{name} = {size} makes {-(-size // step)} blocks of {step}, more than {MOST_BLOCKS}: take a larger block"
            )


def _checked_buffers(s: Kernel) -> Kernel:
    for buffer, (used, there) in s.buffer_use().items():
        if used > there:
            raise ValueError(
                f"block {s.blocking} ({s.mode}, {s.buffering} buffers) overflows {buffer} of {s.placed_on.name}: "
                f"{used} bytes needed, {there} available; take a smaller block"
            )
    return s


def variant(schedule: Kernel, **changes: Any) -> Kernel:
    """Return the schedule with other options of :func:`build_schedule`.

    With another block, mode or grid the kernel chooses N_fused anew.
    """
    values = {f.name: getattr(schedule, f.name) for f in fields(schedule)} | {"kernel": schedule.kernel}
    if changes.keys() & {"blocking", "mode", "buffering", "operand", "terms", "grid", "resident", "kernel"}:
        values |= dict.fromkeys(FOLLOWS_THE_BLOCK)
    if changes.keys() & {"grid", "resident"}:
        values["swizzle"] = None
    if changes.get("kernel", schedule.kernel) != schedule.kernel:
        values |= dict.fromkeys(FOLLOWS_THE_KERNEL)
    return build_schedule(**(values | changes))
