/* Scans and quantised words of one type of number. Included by integer_words_split.h once for each type, with
 *   NUMBER     the type,                                INTEGER        the signed integer of its size,
 *   MAGNITUDE  the mask of all bits but the sign,       INFINITY_CODE  the encoding of infinity,
 *   ROUNDER    1.5 units whose last place is 1,         NAME(x)        the name x of this type.
 *
 * Scans compare magnitudes as integers, which order them as numbers do, infinities and NaN above all others: `most` is the largest
 * finite one and `all` the largest. Rows are reduced, columns updated by one row after the other.
 */
MPG_INLINE INTEGER NAME(magnitude)(const void *data, ptrdiff_t i)
{
    INTEGER bits;
    memcpy(&bits, (const char *)data + i * (ptrdiff_t)sizeof bits, sizeof bits);
    return bits & MAGNITUDE;
}

MPG_INLINE double NAME(number)(INTEGER bits)
{
    NUMBER value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

MPG_INLINE int NAME(scan_row)(const void *data, ptrdiff_t start, ptrdiff_t count, double *largest)
{
    INTEGER most = 0, all = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        const INTEGER size = NAME(magnitude)(data, start + i), finite = size < INFINITY_CODE ? size : 0;
        most = most > finite ? most : finite;
        all = all > size ? all : size;
    }
    *largest = NAME(number)(most);
    return all < INFINITY_CODE;
}

MPG_INLINE void NAME(scan_columns)(const void *data, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t start, ptrdiff_t count,
                                   double *largest, uint8_t *finite_columns)
{
    INTEGER most[WORDS_SCAN_BLOCK] = {0}, all[WORDS_SCAN_BLOCK] = {0};
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t i = 0; i < count; i++) {
            const INTEGER size = NAME(magnitude)(data, row * columns + start + i);
            const INTEGER finite = size < INFINITY_CODE ? size : 0;
            most[i] = most[i] > finite ? most[i] : finite;
            all[i] = all[i] > size ? all[i] : size;
        }
    for (ptrdiff_t i = 0; i < count; i++) {
        largest[i] = NAME(number)(most[i]);
        finite_columns[i] = all[i] < INFINITY_CODE;
    }
}

/* Words clamp(RN(x / factor)) of what is left of x, and what they leave, x - factor word, in the type of x: `rest` gets it and its
 * largest finite magnitude is returned, unless rest is NULL. `limit` is below 2^20, so adding and subtracting ROUNDER rounds to
 * nearest even. */
MPG_INLINE double NAME(quantise)(const NUMBER *x, ptrdiff_t count, NUMBER factor, NUMBER limit, NUMBER *rest,
                                 int8_t *MPG_RESTRICT word)
{
    INTEGER largest = 0;
    for (ptrdiff_t start = 0; start < count; start += WORDS_CHUNK) {
        const ptrdiff_t size = count - start < WORDS_CHUNK ? count - start : WORDS_CHUNK;
        NUMBER values[WORDS_CHUNK], whole[WORDS_CHUNK];
        for (ptrdiff_t i = 0; i < size; i++) {
            const NUMBER value = NAME(magnitude)(x, start + i) < INFINITY_CODE ? x[start + i] : 0;
            NUMBER quotient = value / factor;
            quotient = quotient > limit ? limit : quotient;
            quotient = quotient < -limit ? -limit : quotient;
            whole[i] = (quotient + ROUNDER) - ROUNDER;
            values[i] = value - factor * whole[i];
        }
        for (ptrdiff_t i = 0; i < size; i++)
            word[start + i] = (int8_t)(int32_t)whole[i];
        if (!rest)
            continue;
        for (ptrdiff_t i = 0; i < size; i++) {
            const INTEGER bits = NAME(magnitude)(values, i), finite = bits < INFINITY_CODE ? bits : 0;
            rest[start + i] = values[i];
            largest = finite > largest ? finite : largest;
        }
    }
    return NAME(number)(largest);
}

#undef NUMBER
#undef INTEGER
#undef MAGNITUDE
#undef INFINITY_CODE
#undef ROUNDER
#undef NAME
