"""Defines the base class of every kernel on a chip, which planner, simulator and reports use, and of cube kernels."""

from abc import abstractmethod
from typing import ClassVar, Literal, Self

from ascend.kernels.options import BlockedProduct
from ascend.memory import Misses, cube_memory_bytes, schedule_misses
from ascend.programs.program import Phase
from ascend.roofline import RooflinePoint, Traffic
from ascend.schedule_options import ScheduleOptions
from ascend.tile_schedule import TileSchedule


class Phases:
    """The phases that :mod:`ascend.pipes.build` offers to a kernel that writes down its operations."""

    simulated: range

    @abstractmethod
    def tiles_phase(self) -> Phase:
        """Return the multiplication of all tiles on the cubes."""


class Kernel(TileSchedule):
    """A schedule on a chip. Kernels have no fields of their own: :class:`TileSchedule` is the dataclass."""

    #: Model of L2, see :func:`ascend.pipes.build.build_program`; whether starting the kernel takes its time.
    l2_model: ClassVar[Literal["reuse", "shared_b"]] = "reuse"
    launches: ClassVar[bool] = True
    #: Whether the cube multiplies.
    on_cube: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def placed(cls, place: BlockedProduct, options: ScheduleOptions) -> Self:
        """Return the schedule that the options mean: what is None the kernel chooses, what it cannot do it refuses
        (ValueError)."""

    @property
    def launch_seconds(self) -> float:
        """Time from the start of the kernel to its first load, and from its last store to its end."""
        started = 1e-6 * self.placed_on.vector_launch_us if self.widens else 0.0
        return float(self.placed_on.launch_seconds(self.used_cores, self.warm)) + started

    def misses(self) -> Misses:
        """Return the share of the loads of A and B that memory serves."""
        return schedule_misses(self)

    @abstractmethod
    def memory_bytes(self) -> float:
        """Return bytes from and to memory: operands that miss L2, C, the passes over whole matrices."""

    @abstractmethod
    def peak_flops(self) -> float:
        """Return FLOP/s that the units could do at best, FP32-equivalent."""

    def roofline(self) -> RooflinePoint:
        """Return the roofline of what the schedule moves: its FLOP over its own bytes from and to memory, for any m, k, n."""
        intensity = 2.0 * self.m * self.n * self.k / self.memory_bytes()
        return RooflinePoint.of(intensity, self.peak_flops(), self.placed_on.hbm_bytes_per_second)

    def estimated_seconds(self) -> float | None:
        """Return the time by the kernel's closed forms, where they are made for single schedules."""
        return None

    def traffic(self) -> Traffic | None:
        """Return elements between memory and L1 for one term by eq. 9, where it describes the kernel."""
        return None

    @abstractmethod
    def placement(self) -> str:
        """Return how tiles and operands are placed, in a few letters."""

    def cores_text(self) -> str:
        """Return the grid of cores, in a few letters."""
        return str(self.grid)

    @abstractmethod
    def multiplication(self, phases: Phases) -> Phase:
        """Return the phase between the passes over whole matrices, as `phases` writes operations down."""


class CubeKernel(Kernel):
    """A kernel that multiplies on the cube."""

    def memory_bytes(self) -> float:
        """Return bytes from and to memory, counted by :func:`ascend.memory.cube_memory_bytes`."""
        return cube_memory_bytes(self)

    def peak_flops(self) -> float:
        """Return the cubes' divided by the products that one FP32 product costs."""
        return self.placed_on.peak_flops(self.operand) / self.terms

    def multiplication(self, phases: Phases) -> Phase:
        """Return tiles of C."""
        return phases.tiles_phase()
