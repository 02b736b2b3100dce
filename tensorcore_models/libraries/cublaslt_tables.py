"""This module tabulates the fields of cuBLASLt's algorithm configurations for the GPUs and versions that were measured.

The rows are taken from `facebookexperimental/triton`, bitequiv/cublas_match/arch/*.py, under its licence:

    Copyright 2018-2020 Philippe Tillet. Copyright 2020-2022 OpenAI.
    Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
    documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
    rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
    permit persons to whom the Software is furnished to do so, subject to the following conditions: The above copyright
    notice and this permission notice shall be included in all copies or substantial portions of the Software. THE
    SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
    WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS
    OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
    OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""

from dataclasses import dataclass

#: Fields of a configuration, in the order of their numbers.
FIELDS = (
    "ALGO_ID", "TILE_ID", "SPLITK_NUM", "REDUCTION_SCHEME", "CTA_SWIZZLING", "CUSTOM_OPTION", "STAGES_ID", "INNER_SHAPE_ID",
    "CLUSTER_SHAPE_ID",
)  # fmt: skip

#: Family of kernels by ALGO_ID. 12 was seen only with K = 1, which has no order.
KERNELS = {
    11: "gemmsn", 12: "cutlass", 13: "gemv", 14: "dot", 16: "gemmsn", 21: "cutlass", 23: "cutlass", 24: "cutlass", 66: "nvjet",
}  # fmt: skip

#: (k in a tile, k in an MMA) of CUTLASS kernels by STAGES_ID. The names of the public enumeration give the tile. STAGES_ID 0
#: has no tile in its name and was measured; 11 and 17 are known by their names alone.
CUTLASS_STAGES = {0: (32, 8), 25: (32, 16)} | {stage: (16 << ((stage - 1) // 6), 16) for stage in range(7, 21)}
#: k in a tile of nvjet kernels by STAGES_ID; the tile is also the grain of split-K.
NVJET_STAGES = {35: 64, 36: 128}

#: Grains of CUTLASS's split-K: the first if it divides k, else the second.
CUTLASS_GRAINS = (64, 8)

#: (format of the partials, format of the running sum) of CUTLASS's split-K by REDUCTION_SCHEME; None means fp32.
CUTLASS_MERGES = {0: (None, "output"), 1: (None, "output"), 2: (None, None), 4: ("output", None)}

#: (number of contiguous chunks of k, length of the blocks in a chunk) by (ALGO_ID, CUSTOM_OPTION); length 0 means the chunk.
GEMMSN = {(11, 0): (2, 256), (11, 1): (4, 128), (16, 0): (1, 0)}

#: (lanes, k in a chunk) of matrix-vector kernels whose lanes own one contiguous slice, by CUSTOM_OPTION.
GEMV_SLICES = {5: (32, 16)}
#: CUSTOM_OPTION values whose number of lanes depends on occupancy if there are more outputs than the GPU holds at once.
GEMV_OCCUPANCY = (10,)


@dataclass(frozen=True)
class Gemv:
    """`Gemv` is the order of k in a matrix-vector kernel.

    A lane takes `width` consecutive values of k from each tile; a negative width means ceil(k/lanes), at most -width. Each
    `chunk` tiles have a sum of their own (0 means all tiles). Lanes are joined by a butterfly with halving distances if
    `butterfly`, else from left to right.
    """

    width: int
    lanes: int
    chunk: int
    butterfly: bool


def _rows(width: int, lanes: int, chunk: int, butterfly: bool, *options: int) -> list[tuple[int, Gemv]]:
    return [(option, Gemv(width, lanes, chunk, butterfly)) for option in options]


GEMV_SM100 = dict([
    *_rows(1, 1, 0, False, 0, 6, 7, 8, 84),
    *_rows(1, 16, 16, False, 12, 13, 14),
    *_rows(1, 16, 32, False, 11),
    *_rows(-64, 2, 0, True, 48, 56, 62),
    *_rows(-64, 4, 0, True, 40, 50, 58, 86),
    *_rows(-64, 8, 0, True, 42, 52, 60, 66, 98),
    *_rows(-64, 16, 0, True, 44, 54, 90),
    *_rows(-64, 32, 0, True, 36, 46, 82),
    *_rows(1, 2, 0, True, 49, 57, 63, 95),
    *_rows(1, 4, 0, True, 41, 51, 59, 65, 69),
    *_rows(1, 8, 0, True, 43, 53, 61, 67),
    *_rows(1, 16, 0, True, 35, 45, 55, 81, 91),
    *_rows(1, 32, 0, True, 37, 47, 75, 83, 93),
    *_rows(4, 32, 0, True, 10),
])  # fmt: skip
#: The rows of sm_103, which differ from sm_100 in one row.
GEMV_SM103 = {**GEMV_SM100, **dict(_rows(1, 1, 256, False, 8))}
#: The rows of sm_90, which restarts single lanes and has more options.
GEMV_SM90 = {**GEMV_SM100, **dict([
    *_rows(1, 1, 256, False, 7, 8),
    *_rows(1, 1, 512, False, 0),
    *_rows(-64, 2, 0, True, 102),
    *_rows(-64, 4, 0, True, 68, 96, 110),
    *_rows(-64, 8, 0, True, 106),
    *_rows(-64, 16, 0, True, 72, 100),
    *_rows(-64, 32, 0, True, 74, 92),
    *_rows(1, 4, 0, True, 111),
    *_rows(1, 8, 0, True, 89),
    *_rows(1, 16, 0, True, 101),
])}  # fmt: skip


@dataclass(frozen=True)
class Platform:
    """`Platform` is a GPU architecture (compute capability) with a measured version of cuBLASLt.

    `gemv` holds the orders of ALGO_ID 13 by CUSTOM_OPTION. nvjet kernels with `restarting_stages` (STAGES_ID) restart at each
    tile of k. `loses_tail` says whether nvjet's split-K leaves out the last values of k of some shapes (None if not measured).
    `processors` is the number of multiprocessors of the GPU, with 2048 threads each.
    """

    target: str
    version: str
    gemv: dict[int, Gemv]
    restarting_stages: tuple[int, ...]
    loses_tail: bool | None
    processors: int


#: Rows by (target, major.minor). The row of 13.0 on sm_90 is that of 13.1; recordings of 13.0 on an H100 agree with it
#: (:mod:`.profile_tables`).
PLATFORMS = {
    ("sm_90", "13.0"): Platform("sm_90", "13.0", GEMV_SM90, (36,), True, 132),
    ("sm_90", "13.1"): Platform("sm_90", "13.1.1", GEMV_SM90, (36,), True, 132),
    ("sm_100", "12.8"): Platform("sm_100", "12.8.5", GEMV_SM100, (), None, 152),
    ("sm_100", "13.1"): Platform("sm_100", "13.1.1", GEMV_SM100, (), True, 152),
    ("sm_103", "13.1"): Platform("sm_103", "13.1.1", GEMV_SM103, (), True, 152),
}

#: Target of each device. Other GPUs of the same target were not measured.
TARGETS = {"h100": "sm_90", "b200": "sm_100", "gb200": "sm_100", "b300": "sm_103", "gb300": "sm_103"}
