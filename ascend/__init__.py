"""Ascend matrix units: chips, block planning, the tile schedule and its two interpreters, SGEMM-cube."""

from ascend.blocking import Blocking, Rejection, candidate_rejections, feasible_blocks, optimal_bm
from ascend.chip import Chip
from ascend.chip_files import get_chip, list_chips, load_chip
from ascend.cube import cube_gemm, cube_hgemm, reconstruct
from ascend.schedule import TileSchedule, build_schedule

__all__ = [
    "Blocking",
    "Chip",
    "Rejection",
    "TileSchedule",
    "build_schedule",
    "candidate_rejections",
    "cube_gemm",
    "cube_hgemm",
    "feasible_blocks",
    "get_chip",
    "list_chips",
    "load_chip",
    "optimal_bm",
    "reconstruct",
]
