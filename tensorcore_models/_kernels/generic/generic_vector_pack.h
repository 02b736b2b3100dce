/* Panels of B taken apart, a vector of columns at a time; for one instruction set (generic_vector_isa.h). The vector twin of
 * mpg_pack_rows (generic_pack.h) for the operands of the vector kernels; operands with block scales go the scalar way.
 */
VTARGET static void V_(pack_position)(const mpg_plan *p, const uint64_t *bits, int64_t first, int64_t at, uint8_t *special,
                                      const mpg_packed *out)
{
    int64_t *to = out->words + 2 * (first * out->depth + at * MPG_PANEL);
    unsigned marked = 0;
    for (int l = 0; l < MPG_PANEL; l += VLANES) {
        const V_(number) x = V_(number_of)(V_(load)(bits + l), &p->b);
        const V kept = p->parts > 1 ? x.significand & p->b_masks[at % p->parts] : x.significand;
        V_(store)(to + l, (kept ^ x.negative) - x.negative);
        V_(store)(to + MPG_PANEL + l, x.align);
        marked |= V_(lanes)(x.special) << l;
    }
    for (int l = 0; marked; l++, marked >>= 1)
        if (marked & 1)
            special[l] |= (uint8_t)mpg_pack_special(p, out, first + l, at, bits[l]);
}

VTARGET static void V_(pack_columns)(const mpg_plan *p, const mpg_matrix *source, const mpg_layout *whole,
                                     const mpg_layout *tail, int64_t begin, int64_t end, const mpg_packed *out)
{
    const int64_t full = out->depth / p->step;
    for (int64_t s = 0; s < out->steps; s++) {
        const mpg_layout *layout = mpg_layout_of(s, full, whole, tail);
        for (int64_t first = begin; first < end; first += MPG_PANEL) {
            const int width = (int)(end - first < MPG_PANEL ? end - first : MPG_PANEL);
            uint8_t *special = out->special + first * out->steps + s * MPG_PANEL;
            for (int t = 0; t < layout->count; t++) {
                uint64_t bits[MPG_PANEL] = {0};
                mpg_elements(source, first, MPG_FIRST_PRODUCT(p, s) + layout->order[t], width, bits);
                V_(pack_position)(p, bits, first, s * p->step + t, special, out);
            }
        }
    }
}
