from ascend.advice import Advice, PlannedWay, advise
from ascend.batch import BatchPlan, plan_batch
from ascend.blocking import Blocking, Rejection, candidate_rejections, feasible_blocks, optimal_bm
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip, list_chips, load_chip
from ascend.cube import cube_gemm, cube_hgemm, reconstruct
from ascend.grid import Grid, Swizzle
from ascend.paper_kernel import rejections
from ascend.pareto import Point, pareto
from ascend.pipes.simulate import Timeline, simulate
from ascend.planner import Plan, plan, plan_of
from ascend.reports.byte_table import byte_table
from ascend.reports.explain import explain
from ascend.reports.tiling import tiling_fields
from ascend.reports.waterfall import sensitivities, waterfall
from ascend.roofline import RooflinePoint, Traffic, operational_intensity, roofline, traffic
from ascend.schedule import build_schedule
from ascend.tile_schedule import TileSchedule

__all__ = [
    "Advice",
    "BatchPlan",
    "Blocking",
    "Chip",
    "Grid",
    "Plan",
    "Point",
    "Rejection",
    "RooflinePoint",
    "Swizzle",
    "TileSchedule",
    "Timeline",
    "Traffic",
    "PlannedWay",
    "advise",
    "build_schedule",
    "byte_table",
    "candidate_rejections",
    "cube_gemm",
    "cube_hgemm",
    "explain",
    "feasible_blocks",
    "get_chip",
    "list_chips",
    "load_chip",
    "operational_intensity",
    "optimal_bm",
    "pareto",
    "plan",
    "plan_batch",
    "plan_of",
    "reconstruct",
    "rejections",
    "roofline",
    "sensitivities",
    "simulate",
    "tiling_fields",
    "traffic",
    "waterfall",
]
