"""This module encodes and decodes arrays (arithmetic in convert.h, validation in tensorcore_models.formats.rounding).

Arrays are contiguous, aligned byte views with an element size, so that one signature serves all types.
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
        uint64_t seed

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

# Number of elements that a thread takes at a time; fewer than two chunks are computed by one thread.
cdef int64_t CHUNK = 1 << 15

cdef enum:
    ENCODE, NARROW, DECODE, LOOKUP

cdef struct conversion:
    int what
    const void *source
    const void *table
    void *out
    int source_size, out_size, isa
    uint64_t first_index
    mpg_target target
    mpg_narrow narrow
    mpg_encoding encoding


cdef int64_t _range(const conversion *x, int64_t begin, int64_t end) noexcept nogil:
    """Convert some elements, and return the first element without encoding or value, or -1."""
    if x.what == ENCODE:
        return mpg_encode_range(x.source, x.source_size, x.out, x.out_size, begin, end, x.first_index, &x.target)
    if x.what == DECODE:
        return mpg_decode_range(x.source, x.source_size, x.out, x.out_size, begin, end, &x.encoding)
    if x.what == NARROW:
        mpg_narrow_range(x.source, x.out, x.out_size, begin, end, &x.narrow, x.isa)
    else:
        mpg_lookup_range(x.source, x.source_size, x.table, x.out, x.out_size, begin, end)
    return -1


cdef int64_t _convert(conversion *x, const unsigned char[::1] source, unsigned char[::1] out, int threads) except -2:
    """Convert all elements, and return the first element without encoding or value, or -1."""
    cdef int64_t chunk, count = source.shape[0] // x.source_size, chunks = (count + CHUNK - 1) // CHUNK, failed = 0
    cdef mpg_fp_state state
    if count == 0:
        return -1
    if out.shape[0] // x.out_size < count:
        raise ValueError(f"the output has {out.shape[0] // x.out_size} elements, expected at least {count}")
    x.source, x.out = &source[0], &out[0]
    with nogil:
        for chunk in prange(chunks, num_threads=threads if chunks > 1 else 1, schedule="static"):
            state = mpg_fp_enter()
            failed |= _range(x, chunk * CHUNK, min((chunk + 1) * CHUNK, count)) >= 0
            mpg_fp_leave(state)
        return _range(x, 0, count) if failed else -1


def encode(const unsigned char[::1] source, int source_size, unsigned char[::1] out, int out_size, target,
           unsigned long long first_index, int isa, int threads, bint allow_narrow=True):
    """Encode floats (source_size 4) or doubles (8) for `target` (an EncodeTarget of tensorcore_models.formats.rounding).

    Return the index of the first element that the format cannot encode (`out` is then incomplete), or -1.
    """
    cdef conversion x
    x.source_size, x.out_size, x.first_index, x.isa = source_size, out_size, first_index, isa
    x.target = vars(target)
    x.target.seed = mpg_mix64(x.target.seed)
    x.what = NARROW if allow_narrow and source_size == 4 and mpg_narrow_prepare(&x.target, target.bits, &x.narrow) else ENCODE
    return _convert(&x, source, out, threads)


def decode(const unsigned char[::1] source, int source_size, unsigned char[::1] out, int out_size, fmt, int threads):
    """Decode encodings of the Format `fmt` to floats (out_size 4) or doubles (8).

    Return the index of the first element without such a value, or with bits beyond the format's width, or -1.
    """
    cdef conversion x
    cdef mpg_encoding *f = &x.encoding
    x.what, x.source_size, x.out_size = DECODE, source_size, out_size
    f.exponent_bits, f.fraction_bits, f.padding_bits = fmt.exponent_bits, fmt.fraction_bits, fmt.padding_bits
    f.bits, f.quantum_exponent, f.sign_bit = fmt.bits, fmt.quantum_exponent, fmt.sign_bit
    f.is_ieee, f.is_fn = fmt.specials == "ieee", fmt.specials == "fn"
    f.is_fnuz, f.is_scale = fmt.specials == "fnuz", fmt.specials == "scale"
    return _convert(&x, source, out, threads)


def lookup(const unsigned char[::1] source, int source_size, const unsigned char[::1] table, unsigned char[::1] out,
           int out_size, int threads):
    """Look 8- or 16-bit encodings (source_size 1 or 2) up in a table of all 2^8 or 2^16 values."""
    cdef conversion x
    if table.shape[0] != (<int64_t>out_size << (8 * source_size)):
        raise ValueError(f"the table has {table.shape[0]} bytes, expected {out_size} for each of 2^{8 * source_size} encodings")
    x.what, x.source_size, x.out_size, x.table = LOOKUP, source_size, out_size, &table[0]
    _convert(&x, source, out, threads)
