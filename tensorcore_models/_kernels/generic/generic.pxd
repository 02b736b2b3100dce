# The C side of the generic kernels; what it means stands in the headers.

from libc.stdint cimport int32_t, int64_t

from tensorcore_models._kernels.common.driver cimport mpg_batch, mpg_drive

cdef extern from "generic_job.h":
    int MPG_HAS_WIDE
    int MPG_LANES, MPG_PANEL
    int MPG_MAX_TERMS, MPG_MAX_PARTS, MPG_MAX_GROUP, MPG_MAX_LIMBS
    int MPG_ALIGN_NONE

    int MPG_KIND_int, MPG_KIND_uint64_t, MPG_KIND_double, MPG_KIND_mpg_masks

    ctypedef struct mpg_member:
        const char *name
        size_t offset
        int kind

    const mpg_member *MPG_MEMBERS_OF_PLAN
    const mpg_member *mpg_members_of(int kind)

    ctypedef struct mpg_result:
        pass

    ctypedef struct mpg_rule:
        pass

    # Members that Python fills in are in MPG_PLAN_MEMBERS; these are read.
    ctypedef struct mpg_plan:
        int step, scaled, block, parts
        mpg_result result
        mpg_rule rule, late

    ctypedef struct mpg_layout:
        int count, segments
        const int32_t *order
        const int32_t *bounds
        const int32_t *tree

    ctypedef struct mpg_packed:
        int64_t rows, depth, steps, blocks

    ctypedef struct mpg_matrix:
        const char *data
        int64_t row_stride, column_stride
        int size

    ctypedef struct mpg_vector_rule:
        pass

    ctypedef struct mpg_vector_rules:
        mpg_vector_rule fused, late

    ctypedef struct mpg_job:
        const mpg_plan *plan
        const mpg_layout *whole
        const mpg_layout *tail
        char *out
        int64_t columns
        int out_size, isa, vector
        mpg_vector_rules rules

    ctypedef struct mpg_call:
        mpg_drive drive
        mpg_batch batch
        mpg_job job
        mpg_matrix a, b, c, scale_a, scale_b
        mpg_packed x, y
        int64_t jump[6]

    bint mpg_runs_vectors(const mpg_plan *p, int isa, int64_t columns)
    mpg_vector_rule mpg_vector_rule_of(const mpg_result *t, const mpg_rule *r)
    bint mpg_call_room(mpg_call *call)
    void mpg_call_free(mpg_call *call)
    void mpg_call_start(mpg_call *call, int threads)
    void mpg_call_start_batch(mpg_call *call, int64_t count)
