/* Chains of steps of Arm's matrix instructions, for a machine that has them or an emulator of one. No C library: what is read and written
 * goes through system calls. Standard input: one header, then for each tile its accumulators and the operands of its steps.
 * A register is 16 bytes: a (m, k) row by row, b (k, n) column by column, an accumulator one register for each row of d. */
typedef unsigned char byte;
typedef unsigned int word;

enum { BFMMLA, BFDOT, BFMOPA, FMOPA_HALF, FMOPA_SINGLE, FMOPA_DOUBLE };
enum { REGISTER = 16, MOST_ROWS = 16, EXTENDED = 1 << 13 };
enum { NO_EXTENDED_MODE = 10, NO_SHORT_VECTORS = 11, CUT_INPUT = 12 };

typedef struct {
    word unit, rows, steps, extended;
} header;

static long call(long number, long x, long y, long z)
{
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = x, x1 __asm__("x1") = y, x2 __asm__("x2") = z;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}

static void leave(int status)
{
    for (;;)
        call(93, status, 0, 0);
}

/* Whether `size` bytes came; none at the end of the input, a part of them ends the program. */
static int take(void *to, long size)
{
    long done = 0, got;
    while (done < size && (got = call(63, 0, (long)to + done, size - done)) > 0)
        done += got;
    if (done && done < size)
        leave(CUT_INPUT);
    return done == size;
}

static void give(const void *from, long size)
{
    for (long done = 0; done < size;)
        done += call(64, 1, (long)from + done, size - done);
}

static void set_extended(void)
{
    unsigned long control = EXTENDED;
    __asm__ volatile("msr fpcr, %0\n\tisb\n\tmrs %0, fpcr" : "+r"(control));
    if (!(control & EXTENDED))
        leave(NO_EXTENDED_MODE);
}

static void start_tiles(void)
{
    unsigned long size;
    __asm__ volatile(".arch_extension sme\n\tsmstart za\n\trdsvl %0, #1" : "=r"(size));
    if (size != REGISTER)
        leave(NO_SHORT_VECTORS);
}

/* Rows of tile 0 lie four vectors of ZA apart for 32-bit elements, eight for 64-bit ones. */
static void load_rows(const byte *rows, word count, word apart)
{
    for (word i = 0; i < count; i++) {
        register word index __asm__("w12") = i * apart;
        __asm__ volatile(".arch_extension sme\n\tldr za[w12, 0], [%1]" ::"r"(index), "r"(rows + i * REGISTER) : "memory");
    }
}

static void store_rows(byte *rows, word count, word apart)
{
    for (word i = 0; i < count; i++) {
        register word index __asm__("w12") = i * apart;
        __asm__ volatile(".arch_extension sme\n\tstr za[w12, 0], [%1]" ::"r"(index), "r"(rows + i * REGISTER) : "memory");
    }
}

#define VECTORS(instruction)                                                                                                   \
    __asm__ volatile("ldr q0, [%0]\n\tldr q1, [%1]\n\tldr q2, [%2]\n\t" instruction "\n\tstr q2, [%2]" ::"r"(a), "r"(b),       \
                     "r"(rows)                                                                                                 \
                     : "memory")
/* A system call ends the streaming mode, and keeps ZA. */
#define OUTER(instruction)                                                                                                     \
    __asm__ volatile(                                                                                                          \
        ".arch_extension sme-f64\n\tsmstart sm\n\tptrue p0.b\n\tldr z0, [%0]\n\tldr z1, [%1]\n\t" instruction::"r"(a), "r"(b)  \
        : "memory")

static void step(word unit, byte *rows, const byte *a, const byte *b)
{
    switch (unit) {
    case BFMMLA:
        VECTORS("bfmmla v2.4s, v0.8h, v1.8h");
        break;
    case BFDOT:
        VECTORS("bfdot v2.4s, v0.8h, v1.8h");
        break;
    case BFMOPA:
        OUTER("bfmopa za0.s, p0/m, p0/m, z0.h, z1.h");
        break;
    case FMOPA_HALF:
        OUTER("fmopa za0.s, p0/m, p0/m, z0.h, z1.h");
        break;
    case FMOPA_SINGLE:
        OUTER("fmopa za0.s, p0/m, p0/m, z0.s, z1.s");
        break;
    case FMOPA_DOUBLE:
        OUTER("fmopa za0.d, p0/m, p0/m, z0.d, z1.d");
        break;
    default:
        leave(1);
    }
}

void _start(void)
{
    header given;
    byte rows[MOST_ROWS * REGISTER], operands[2 * REGISTER];
    if (!take(&given, sizeof given) || given.rows > MOST_ROWS)
        leave(1);
    if (given.extended)
        set_extended();
    word outer = given.unit >= BFMOPA, apart = given.unit == FMOPA_DOUBLE ? 8 : 4;
    if (outer)
        start_tiles();
    while (take(rows, given.rows * REGISTER)) {
        if (outer)
            load_rows(rows, given.rows, apart);
        for (word i = 0; i < given.steps; i++) {
            if (!take(operands, sizeof operands))
                leave(CUT_INPUT);
            step(given.unit, rows, operands, operands + REGISTER);
        }
        if (outer)
            store_rows(rows, given.rows, apart);
        give(rows, given.rows * REGISTER);
    }
    leave(0);
}
