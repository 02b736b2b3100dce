/* Special functions for WebAssembly: one number through a sequence of instructions, and what each of them found. */
#include "sequences.h"

#define EXPORT(name) __attribute__((export_name(name)))

/* One instruction as the page reads it; of the special-function unit's the reduced operand and F, too. */
typedef struct {
    uint32_t word, is_fixed;
    int32_t entry, x, scale, whole;
    uint32_t sign;
    int32_t square;
    double total;
} instruction_record;

/* `words` are the operands and constants, registers from 0 on; `units` and `coefficients` the unit's tables. */
EXPORT("evaluate")
void evaluate(const mpg_step *steps, int count, const uint32_t *words, int given, const double *coefficients,
              const mpg_unit *units, instruction_record *found)
{
    static mpg_registers r;
    static mpg_tables tables;
    tables.coefficients = coefficients;
    memcpy(tables.units, units, sizeof tables.units);
    for (int j = 0; j < given; j++)
        r.words[j][0] = words[j];
    for (int j = 0; j < count; j++) {
        const mpg_step *t = &steps[j];
        mpg_step_block_body(MPG_ISA_BASELINE, t->operation, r.words[t->a], r.words[t->b], r.words[t->c], r.words[t->target],
                            &tables, &r.reduced);
        found[j] = (instruction_record){.word = r.words[t->target][0],
                                        .is_fixed = r.reduced.is_fixed[0],
                                        .entry = r.reduced.entry[0],
                                        .x = r.reduced.x[0],
                                        .scale = r.reduced.scale[0],
                                        .whole = r.reduced.whole[0],
                                        .sign = r.reduced.sign[0],
                                        .square = mpg_square(r.reduced.x[0]),
                                        .total = r.reduced.f[0]};
    }
}
