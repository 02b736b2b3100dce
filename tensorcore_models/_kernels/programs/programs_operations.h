/* The operations of Programs, over the lanes of one panel; for one instruction set (programs_isa.h). Each line of MPG_OPERATIONS is a
 * row: name, how many sources, and what it computes of x, y, w. A source is a row of lanes or, with the letter s, one number for all.
 * Conditions are ones or zeros. tensorcore_models.kernels.programs says which ranges of numbers come here: below 2^62 in size, shifts by
 * natural numbers, products of numbers below 2^32 (`multiply`).
 */
#define ONES(places) (~V_(shl)(~(V){0}, places))
/* Beyond 63 places nothing is left of numbers below 2^62, which 63 places leave, too, in every rounding. */
#define CAPPED(places) V_(min_signed)(places, V_(all)(63))

VFN V V_(rounded)(V x, V places, V negative, int rounding)
{
    if (rounding == MPG_RZ)
        return V_(shr)(x, places);
    const V n = CAPPED(places), ones = ONES(n), below = ones >> 1, unit = ones & 1;
    switch (rounding) {
    case MPG_RNE:
        return V_(shr)(x + below + (V_(shr)(x, n) & unit), n);
    case MPG_RNA:
        return V_(shr)(x + below + unit, n);
    case MPG_RNU:
        return V_(shr)(x + below + (~negative & unit), n);
    case MPG_RND:
        return V_(shr)(x + below + (negative & unit), n);
    case MPG_RNZ:
        return V_(shr)(x + below, n);
    case MPG_RNO:
        return V_(shr)(x + below + (~V_(shr)(x, n) & unit), n);
    case MPG_RA:
        return V_(shr)(x + ones, n);
    case MPG_RU:
        return V_(shr)(x + (ones & ~negative), n);
    case MPG_RD:
        return V_(shr)(x + (ones & negative), n);
    default: /* to odd */
        return V_(shr)(x, n) | (V_(shr)((x & ones) + ones, n) & 1);
    }
}

VFN V V_(with_sign)(V x, V negative) { return (x ^ negative) - negative; }

/* Source `at` of the instruction: where it is, its lanes from l on, the one number that it is. */
#define FROM(at) const int64_t *const from##at = MPG_PLACE(bases, instruction[2 + at])
#define LOAD(at) V_(load)(from##at + l)
#define ALL(at) V_(all)(*MPG_PLACE(bases, instruction[2 + at]))
/* An operation: what it reads before the lanes, and what it computes for lanes l to l + VLANES - 1. */
#define CASE(NAME, BEFORE, RESULT)                                                                                             \
    case MPG_OP(NAME): {                                                                                                       \
        BEFORE;                                                                                                                \
        for (int l = 0; l < lanes; l += VLANES)                                                                                \
            V_(store)(d + l, RESULT);                                                                                          \
        break;                                                                                                                 \
    }
#define MPG_RUN_UNARY(NAME, OF) CASE(NAME##_v, FROM(0), OF(LOAD(0)))
#define MPG_RUN_BINARY(NAME, OF)                                                                                               \
    CASE(NAME##_vv, FROM(0); FROM(1), OF(LOAD(0), LOAD(1)))                                                                    \
    CASE(NAME##_vs, FROM(0); const V y = ALL(1), OF(LOAD(0), y))                                                               \
    CASE(NAME##_sv, const V x = ALL(0); FROM(1), OF(x, LOAD(1)))
#define MPG_RUN_SHIFT(ROUNDING)                                                                                                \
    CASE(shr_##ROUNDING##_vv, FROM(0); FROM(1), V_(rounded)(LOAD(0), LOAD(1), (V){0}, MPG_##ROUNDING))                         \
    CASE(shr_##ROUNDING##_vs, FROM(0); const V places = ALL(1), V_(rounded)(LOAD(0), places, (V){0}, MPG_##ROUNDING))
#define MPG_RUN_SIGNED_SHIFT(ROUNDING)                                                                                         \
    CASE(shr_##ROUNDING##_vvv, FROM(0); FROM(1); FROM(2), V_(rounded)(LOAD(0), LOAD(1), LOAD(2), MPG_##ROUNDING))              \
    CASE(shr_##ROUNDING##_vsv, FROM(0); const V places = ALL(1); FROM(2), V_(rounded)(LOAD(0), places, LOAD(2), MPG_##ROUNDING))
#define MPG_RUN_CUT(ROUNDING)                                                                                                  \
    case MPG_OP(cuts_##ROUNDING):                                                                                              \
        V_(cuts)(code, bases, instruction, lanes, MPG_##ROUNDING);                                                             \
        break;

/* Lanes of several vectors at a time: sums stay in registers while products are added. */
#define BLOCK (4 * VLANES)
/* What the product `t` of those that an instruction names takes of an operand. */
#define OF_A(at) V_(all)(MPG_PLACE(bases, instruction[at])[t * code->a_stride])
#define OF_B(at) V_(load)(MPG_PLACE(bases, instruction[at]) + t * code->b_stride + l + VLANES * v)

/* Lanes l to l + VLANES * count - 1 of a sum and products, each cut at the exponent `top` and with its sign. Instruction: sum, top;
 * significand, exponent and sign of A; of B; products, and how many places of k lie between two of them. */
VFN void V_(cuts_of)(const mpg_code *code, int64_t *const *bases, const int32_t *instruction, int l, int count, int rounding)
{
    V sum[4], top[4];
    for (int v = 0; v < count; v++) {
        sum[v] = V_(load)(MPG_PLACE(bases, instruction[2]) + l + VLANES * v);
        top[v] = V_(load)(MPG_PLACE(bases, instruction[3]) + l + VLANES * v);
    }
    for (int64_t t = 0, left = instruction[10]; left > 0; t += instruction[11], left--) {
        const V significand = OF_A(4), exponent = OF_A(5), sign = OF_A(6);
        for (int v = 0; v < count; v++) {
            const V negative = sign ^ OF_B(9);
            sum[v] += V_(with_sign)(
                V_(rounded)(V_(multiply)(significand, OF_B(7)), top[v] - exponent - OF_B(8), negative, rounding), negative);
        }
    }
    for (int v = 0; v < count; v++)
        V_(store)(MPG_PLACE(bases, instruction[1]) + l + VLANES * v, sum[v]);
}

VFN void V_(cuts)(const mpg_code *code, int64_t *const *bases, const int32_t *instruction, int lanes, int rounding)
{
    int l = 0;
    for (; l + BLOCK <= lanes; l += BLOCK)
        V_(cuts_of)(code, bases, instruction, l, 4, rounding);
    for (; l < lanes; l += VLANES)
        V_(cuts_of)(code, bases, instruction, l, 1, rounding);
}

/* The largest of a number and exponents of products. Instruction: number; exponent of A; of B; products, and what lies between. */
VFN void V_(larger_sums_of)(const mpg_code *code, int64_t *const *bases, const int32_t *instruction, int l, int count)
{
    V largest[4];
    for (int v = 0; v < count; v++)
        largest[v] = V_(load)(MPG_PLACE(bases, instruction[2]) + l + VLANES * v);
    for (int64_t t = 0, left = instruction[5]; left > 0; t += instruction[6], left--) {
        const V exponent = OF_A(3);
        for (int v = 0; v < count; v++)
            largest[v] = V_(max_signed)(largest[v], exponent + OF_B(4));
    }
    for (int v = 0; v < count; v++)
        V_(store)(MPG_PLACE(bases, instruction[1]) + l + VLANES * v, largest[v]);
}

VFN void V_(larger_sums)(const mpg_code *code, int64_t *const *bases, const int32_t *instruction, int lanes)
{
    int l = 0;
    for (; l + BLOCK <= lanes; l += BLOCK)
        V_(larger_sums_of)(code, bases, instruction, l, 4);
    for (; l < lanes; l += VLANES)
        V_(larger_sums_of)(code, bases, instruction, l, 1);
}

VFN V V_(copy)(V x) { return x; }
VFN V V_(no)(V x) { return ~x; }
VFN V V_(add)(V x, V y) { return x + y; }
VFN V V_(subtract)(V x, V y) { return x - y; }
VFN V V_(multiply_any)(V x, V y) { return x * y; }
VFN V V_(mask)(V x, V y) { return x & y; }
VFN V V_(either)(V x, V y) { return x | y; }
VFN V V_(differ)(V x, V y) { return x ^ y; }

/* Whether a condition holds in one of the lanes. */
VFN int V_(some)(const int64_t *condition, int lanes)
{
    V found = {0};
    for (int l = 0; l < lanes; l += VLANES)
        found |= V_(load)(condition + l);
    return V_(lanes)(found) != 0;
}

VFN int V_(run_lanes)(const mpg_code *code, int64_t *const *bases, int lanes)
{
    for (int i = 0; i < code->count; i++) {
        const int32_t *const instruction = code->instructions + i * MPG_INSTRUCTION;
        int64_t *const d = MPG_PLACE(bases, instruction[1]);
        switch (instruction[0]) {
            MPG_OPERATIONS(MPG_RUN_UNARY, MPG_RUN_BINARY, MPG_RUN_SHIFT, MPG_RUN_SIGNED_SHIFT, MPG_RUN_CUT)
            CASE(copy_s, const V x = ALL(0), x)
            CASE(choose_vvv, FROM(0); FROM(1); FROM(2), V_(pick)(LOAD(0), LOAD(1), LOAD(2)))
            CASE(choose_vvs, FROM(0); FROM(1); const V y = ALL(2), V_(pick)(LOAD(0), LOAD(1), y))
            CASE(choose_vsv, FROM(0); const V x = ALL(1); FROM(2), V_(pick)(LOAD(0), x, LOAD(2)))
            CASE(choose_vss, FROM(0); const V x = ALL(1); const V y = ALL(2), V_(pick)(LOAD(0), x, y))
            CASE(places_vs, FROM(0); const V top = ALL(1), top - V_(leading)(LOAD(0)))
        case MPG_OP(larger_sums):
            V_(larger_sums)(code, bases, instruction, lanes);
            break;
        case MPG_OP(leave_v):
            if (V_(some)(MPG_PLACE(bases, instruction[2]), lanes))
                return 0;
        }
    }
    return 1;
}

VTARGET static int V_(run_program)(const mpg_code *code, int64_t *const *bases, int lanes)
{
    if (lanes == MPG_PROGRAM_LANES)
        return V_(run_lanes)(code, bases, MPG_PROGRAM_LANES);
    return V_(run_lanes)(code, bases, lanes);
}
