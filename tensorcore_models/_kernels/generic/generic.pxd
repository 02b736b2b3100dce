# The C side of the generic kernels; what it means stands in the headers.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "generic_tiles.h":
    int MPG_HAS_WIDE
    int MPG_LANES, MPG_PANEL
    int MPG_MAX_TERMS, MPG_MAX_PARTS, MPG_MAX_GROUP, MPG_MAX_LIMBS
    int MPG_ALIGN_NONE

    ctypedef struct mpg_format:
        int exponent_bits, fraction_bits, padding_bits, specials
        uint64_t sign_bit
        int32_t emin, bias
        int keep_padded_nan
        int32_t zero_align
        int normalise, flush
        int32_t flush_below

    ctypedef struct mpg_result:
        int fraction_bits, padding_bits
        int32_t quantum_exponent, emax
        uint64_t sign_bit, zero_sign, max_code, inf_code, inf_sign

    ctypedef struct mpg_rule:
        int rounding, kept_bits, to_inf, saturate, flush, nan_operand, positive_underflow, positive_zero
        uint64_t nan_code

    ctypedef struct mpg_plan:
        int family, wide, step, vector, narrow
        mpg_format a, b, scale, c, chained, raw_c, raw_d
        int scaled, block, skip_scaled_zero
        mpg_result result
        mpg_rule rule, late
        int late_c, zero_sign, zero_count, parts
        uint64_t a_masks[16]
        uint64_t b_masks[16]
        int alignment, fraction_bits, rounding, sticky, normalised, product_fraction, product_lift, product_integer
        int has_floor, has_limit, has_integer_bits, has_cutoff
        int32_t floor, limit, integer_bits, cutoff
        int dot_fraction_bits, c_fraction_bits, add_rounding, c_wins, sum_fraction_bits
        int32_t base
        int limbs
        double chained_flush, c_flush
        int c_flush_passes
        int a_bits, b_bits, c_bits, d_bits, a_signed, b_signed, c_signed, d_signed, clamp

    ctypedef struct mpg_layout:
        int count, segments
        const int32_t *order
        const int32_t *bounds
        const int32_t *tree

    ctypedef struct mpg_packed:
        int64_t rows, depth, steps, blocks
        void *significand
        int32_t *align
        uint8_t *special
        int32_t *scale
        int32_t *scale_align
        double *values
        int64_t *words
        void *memory

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
        const mpg_packed *a
        const mpg_packed *b
        const mpg_layout *whole
        const mpg_layout *tail
        const mpg_matrix *a_source
        const mpg_matrix *b_source
        const mpg_matrix *c
        char *out
        int64_t columns
        int out_size, isa, vector
        mpg_vector_rules rules

    int mpg_is_lanes(const mpg_plan *p) nogil
    bint mpg_runs_vectors(const mpg_plan *p, int isa, int64_t columns) nogil
    mpg_vector_rule mpg_vector_rule_of(const mpg_result *t, const mpg_rule *r) nogil
    void mpg_pack_rows(const mpg_plan *p, int is_b, const mpg_matrix *source, const mpg_matrix *scale,
                       const mpg_layout *whole, const mpg_layout *tail, int64_t begin, int64_t end, mpg_packed *out) nogil
    bint mpg_packs_vectors(const mpg_job *job) nogil
    void mpg_vector_columns(const mpg_job *job, const mpg_matrix *source, int64_t begin, int64_t end,
                            mpg_packed *out) nogil
    void mpg_pack_values(const mpg_plan *p, const mpg_matrix *source, const mpg_layout *whole, const mpg_layout *tail,
                         int64_t row, mpg_packed *out) nogil
    void mpg_pack_panel(const mpg_plan *p, const mpg_matrix *source, const mpg_layout *whole, const mpg_layout *tail,
                        int64_t panel, mpg_packed *out) nogil
    void mpg_tile(const mpg_job *job, int64_t i0, int64_t i1, int64_t j0, int64_t j1) nogil
