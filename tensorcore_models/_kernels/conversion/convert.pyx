"""Rounding arrays to a format and back; the arithmetic is in convert.h, validation in tensorcore_models.formats.rounding.

Arrays come as contiguous, aligned byte views with the element size beside them, so that one signature serves all types.
"""

from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint64_t

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state

cdef extern from "convert.h":
    ctypedef struct mpg_target:
        int fraction_bits, padding_bits, is_signed, is_scale
        int64_t quantum_exponent, emax
        uint64_t sign_bit, zero_sign, max_bits, inf_code, inf_sign
        int inf_error, saturate
        uint64_t nan_code
        int nan_rule, rounding, flush
        int64_t scale
        uint64_t seed_state

    ctypedef struct mpg_narrow:
        pass

    ctypedef struct mpg_encoding:
        int exponent_bits, fraction_bits, padding_bits, bits
        int is_ieee, is_fn, is_fnuz, is_scale
        int64_t quantum_exponent
        uint64_t sign_bit

    uint64_t mpg_mix64(uint64_t z) nogil
    int mpg_narrow_prepare(const mpg_target *t, int bits, mpg_narrow *n) nogil
    void mpg_narrow_range(const void *source, void *out, int out_size, int64_t begin, int64_t end,
                          const mpg_narrow *n, int isa) nogil
    int64_t mpg_encode_range(const void *source, int source_size, void *out, int out_size, int64_t begin, int64_t end,
                             uint64_t first_index, const mpg_target *t) nogil
    int64_t mpg_decode_range(const void *source, int source_size, void *out, int out_size, int64_t begin, int64_t end,
                             const mpg_encoding *f) nogil
    void mpg_lookup_range(const void *source, int source_size, const void *table, void *out, int out_size,
                          int64_t begin, int64_t end) nogil

# Elements a thread takes at a time; below two of these the loop stays on one thread.
cdef int64_t CHUNK = 1 << 15


cdef int64_t _chunks(int64_t count) noexcept nogil:
    return (count + CHUNK - 1) // CHUNK


def encode(const unsigned char[::1] source, int source_size, unsigned char[::1] out, int out_size, target,
           unsigned long long first_index, int isa, int threads, bint allow_narrow=True):
    """Encode floats (source_size 4) or doubles (8) as `target` says (an EncodeTarget of tensorcore_models.formats.rounding).

    Returns the index of the first element that the format cannot encode, or -1; `out` is then incomplete.
    """
    cdef int64_t count = source.shape[0] // source_size
    if count == 0:
        return -1
    if out.shape[0] // out_size < count:
        raise ValueError("the output is smaller than the source")
    cdef mpg_target t
    t.fraction_bits = target.fraction_bits
    t.padding_bits = target.padding_bits
    t.is_signed = target.is_signed
    t.is_scale = target.is_scale
    t.quantum_exponent = target.quantum_exponent
    t.emax = target.emax
    t.sign_bit = target.sign_bit
    t.zero_sign = target.zero_sign
    t.max_bits = target.max_bits
    t.inf_code = target.inf_code
    t.inf_sign = target.inf_sign
    t.inf_error = target.inf_error
    t.saturate = target.saturate
    t.nan_code = target.nan_code
    t.nan_rule = target.nan_rule
    t.rounding = target.rounding
    t.flush = target.flush
    t.scale = target.scale
    t.seed_state = mpg_mix64(target.seed)
    cdef mpg_narrow n
    cdef bint narrow = allow_narrow and source_size == 4 and mpg_narrow_prepare(&t, target.bits, &n)
    cdef const void *s = &source[0]
    cdef void *o = &out[0]
    cdef int64_t chunk, begin, end, bad = -1, failed = 0
    cdef int64_t chunks = _chunks(count)
    cdef mpg_fp_state state
    with nogil:
        for chunk in prange(chunks, num_threads=threads if chunks > 1 else 1, schedule="static"):
            state = mpg_fp_enter()
            begin = chunk * CHUNK
            end = min(begin + CHUNK, count)
            if narrow:
                mpg_narrow_range(s, o, out_size, begin, end, &n, isa)
            else:
                failed |= mpg_encode_range(s, source_size, o, out_size, begin, end, first_index, &t) >= 0
            mpg_fp_leave(state)
        if failed:
            bad = mpg_encode_range(s, source_size, o, out_size, 0, count, first_index, &t)
    return bad


def decode(const unsigned char[::1] source, int source_size, unsigned char[::1] out, int out_size, fmt, int threads):
    """Decode encodings of the Format `fmt` to floats (out_size 4) or doubles (8).

    Returns the index of the first element without such a value (or with bits beyond the format's width), or -1.
    """
    cdef int64_t count = source.shape[0] // source_size
    if count == 0:
        return -1
    if out.shape[0] // out_size < count:
        raise ValueError("the output is smaller than the source")
    cdef mpg_encoding f
    f.exponent_bits = fmt.exponent_bits
    f.fraction_bits = fmt.fraction_bits
    f.padding_bits = fmt.padding_bits
    f.bits = fmt.bits
    f.is_ieee = fmt.specials == "ieee"
    f.is_fn = fmt.specials == "fn"
    f.is_fnuz = fmt.specials == "fnuz"
    f.is_scale = fmt.specials == "scale"
    f.quantum_exponent = fmt.quantum_exponent
    f.sign_bit = fmt.sign_bit
    cdef const void *s = &source[0]
    cdef void *o = &out[0]
    cdef int64_t chunk, begin, end, bad = -1, failed = 0
    cdef int64_t chunks = _chunks(count)
    cdef mpg_fp_state state
    with nogil:
        for chunk in prange(chunks, num_threads=threads if chunks > 1 else 1, schedule="static"):
            state = mpg_fp_enter()
            begin = chunk * CHUNK
            end = min(begin + CHUNK, count)
            failed |= mpg_decode_range(s, source_size, o, out_size, begin, end, &f) >= 0
            mpg_fp_leave(state)
        if failed:
            bad = mpg_decode_range(s, source_size, o, out_size, 0, count, &f)
    return bad


def lookup(const unsigned char[::1] source, int source_size, const unsigned char[::1] table, unsigned char[::1] out,
           int out_size, int threads):
    """Values of 8- or 16-bit encodings (source_size 1 or 2) from a table of all 2^8 or 2^16 of them."""
    cdef int64_t count = source.shape[0] // source_size
    if count == 0:
        return
    if out.shape[0] // out_size < count or table.shape[0] != (<int64_t>out_size << (8 * source_size)):
        raise ValueError("the output or the table has the wrong size")
    cdef const void *s = &source[0]
    cdef const void *values = &table[0]
    cdef void *o = &out[0]
    cdef int64_t chunk
    cdef int64_t chunks = _chunks(count)
    cdef mpg_fp_state state
    with nogil:
        for chunk in prange(chunks, num_threads=threads if chunks > 1 else 1, schedule="static"):
            state = mpg_fp_enter()
            mpg_lookup_range(s, source_size, values, o, out_size, chunk * CHUNK, min((chunk + 1) * CHUNK, count))
            mpg_fp_leave(state)
