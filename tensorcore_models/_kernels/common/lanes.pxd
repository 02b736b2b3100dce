from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

cdef extern from "lanes.h":
    ctypedef struct mpg_operand:
        int size, fraction_bits, padding_bits, bias, sign_shift, sign_mask, fnuz, emin
        uint32_t magnitude_mask, max_magnitude

    ctypedef struct mpg_source:
        const void *data
        int64_t outer, inner
        const int32_t *order
        const uint8_t *scales
        int64_t scale_outer, scale_inner
        int block_size
        int64_t each, scales_each


cdef inline mpg_source source_of(operand, const int32_t[::1] order=None, int64_t items=1) except *:
    """Source of tensorcore_models.kernels.common, of `items` products, as the kernels take it; the caller keeps both alive."""
    cdef const uint8_t[::1] codes = operand.codes, scales = operand.scales
    cdef mpg_source s
    s.data, s.outer, s.inner, s.each = &codes[0], operand.outer, operand.inner, codes.shape[0] // items
    s.scales, s.scales_each, s.order = NULL, 0, NULL
    if order is not None:
        s.order = &order[0]
    if scales is not None:
        s.scales, s.scales_each = &scales[0], scales.shape[0] // items
    s.scale_outer, s.scale_inner, s.block_size = operand.scale_outer, operand.scale_inner, operand.block_size
    return s
