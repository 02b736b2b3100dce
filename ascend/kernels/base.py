"""This module defines the base class of all kernels on a chip, and of cube kernels."""

from abc import abstractmethod
from typing import ClassVar, Literal, Self

from ascend.kernels.options import BlockedProduct
from ascend.memory import Misses, cube_memory_bytes, schedule_misses
from ascend.programs.program import Phase
from ascend.roofline import RooflinePoint, Traffic
from ascend.schedule_options import ScheduleOptions
from ascend.tile_schedule import TileSchedule


class Phases:
    """`Phases` lists the phases that :mod:`ascend.pipes.build` offers to a kernel for its list of operations."""

    simulated: range

    @abstractmethod
    def tiles_phase(self) -> Phase:
        """Return the multiplication of all tiles on the cubes."""


class Kernel(TileSchedule):
    """`Kernel` is a schedule on a chip. Kernels add no fields to the dataclass :class:`TileSchedule`."""

    #: Model of L2, see :func:`ascend.pipes.build.build_program`.
    l2_model: ClassVar[Literal["reuse", "shared_b"]] = "reuse"
    #: Whether starting the kernel takes time.
    launches: ClassVar[bool] = True
    #: Whether the kernel multiplies on the cube.
    on_cube: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def placed(cls, place: BlockedProduct, options: ScheduleOptions) -> Self:
        """Return the schedule of the options, with the kernel's choice for each None.

        Raises ValueError for impossible options.
        """

    @property
    def launch_seconds(self) -> float:
        """Return the time from the start of the kernel to its first load, plus that from its last store to its end."""
        started = 1e-6 * self.placed_on.vector_launch_us if self.widens else 0.0
        return float(self.placed_on.launch_seconds(self.used_cores, self.warm)) + started

    def misses(self) -> Misses:
        """Return the share of the loads of A and B that memory serves, not L2."""
        return schedule_misses(self)

    @abstractmethod
    def memory_bytes(self) -> float:
        """Return the bytes from and to memory: operands that miss L2, C, the passes over whole matrices."""

    @abstractmethod
    def peak_flops(self) -> float:
        """Return the peak of the units in FLOP/s, FP32-equivalent."""

    def roofline(self) -> RooflinePoint:
        """Return the roofline point of the schedule: its FLOP over its own bytes from and to memory, for any m, k, n."""
        intensity = 2.0 * self.m * self.n * self.k / self.memory_bytes()
        return RooflinePoint.of(intensity, self.peak_flops(), self.placed_on.hbm_bytes_per_second)

    def estimated_seconds(self) -> float | None:
        """Return the time by the kernel's closed forms; None if they do not exist for single schedules."""
        return None

    def traffic(self) -> Traffic | None:
        """Return the elements between memory and L1 for one term by eq. 9; None if eq. 9 does not describe the kernel."""
        return None

    @abstractmethod
    def placement(self) -> str:
        """Return a few words on the placement of tiles and operands."""

    def cores_text(self) -> str:
        """Return a few words on the grid of cores."""
        return str(self.grid)

    @abstractmethod
    def multiplication(self, phases: Phases) -> Phase:
        """Return the phase between the passes over whole matrices, as `phases` lists its operations."""


class CubeKernel(Kernel):
    """`CubeKernel` is a kernel that multiplies on the cube."""

    def memory_bytes(self) -> float:
        """Return the bytes from and to memory, counted by :func:`ascend.memory.cube_memory_bytes`."""
        return cube_memory_bytes(self)

    def peak_flops(self) -> float:
        """Return the cubes' peak divided by the number of products that one FP32 product costs."""
        return self.placed_on.peak_flops(self.operand) / self.terms

    def multiplication(self, phases: Phases) -> Phase:
        """Return the phase that multiplies the tiles of C."""
        return phases.tiles_phase()
