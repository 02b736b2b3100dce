from ascend.planner.advice import Advice as Advice, PlannedWay as PlannedWay, advise as advise
from ascend.planner.batch import BatchPlan as BatchPlan, plan_batch as plan_batch
from ascend.blocking import (
    Blocking as Blocking,
    Rejection as Rejection,
    candidate_rejections as candidate_rejections,
    feasible_blocks as feasible_blocks,
    optimal_bm as optimal_bm,
)
from ascend.chips.chip import Chip as Chip
from ascend.chips.files import get_chip as get_chip, list_chips as list_chips, load_chip as load_chip
from ascend.cube import cube_gemm as cube_gemm, cube_hgemm as cube_hgemm, reconstruct as reconstruct
from ascend.grid import Grid as Grid, Swizzle as Swizzle
from ascend.blocking import rejections as rejections
from ascend.planner.pareto import Point as Point, pareto as pareto
from ascend.pipes.simulate import Timeline as Timeline, simulate as simulate
from ascend.planner.plan import plan as plan
from ascend.planner.result import Plan as Plan, plan_of as plan_of
from ascend.reports.byte_table import byte_table as byte_table
from ascend.reports.explain import explain as explain
from ascend.tiling.fields import tiling_fields as tiling_fields
from ascend.reports.waterfall import sensitivities as sensitivities, waterfall as waterfall
from ascend.roofline import (
    RooflinePoint as RooflinePoint,
    Traffic as Traffic,
    operational_intensity as operational_intensity,
    roofline as roofline,
    traffic as traffic,
)
from ascend.schedule import build_schedule as build_schedule
from ascend.tile_schedule import TileSchedule as TileSchedule
