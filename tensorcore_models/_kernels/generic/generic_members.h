/* The members of mpg_plan by name, for Plan of generic.pyx: lists that end with one without a name. */
#ifndef MPG_GENERIC_MEMBERS_H
#define MPG_GENERIC_MEMBERS_H

#include <stddef.h>

#include "generic_plan.h"

enum {
    MPG_KIND_int,
    MPG_KIND_uint64_t,
    MPG_KIND_double,
    MPG_KIND_mpg_masks,
    MPG_KIND_mpg_format,
    MPG_KIND_mpg_result,
    MPG_KIND_mpg_rule
};

typedef struct {
    const char *name;
    size_t offset;
    int kind;
} mpg_member;

#define MPG_OF_FORMAT(type, name) {#name, offsetof(mpg_format, name), MPG_KIND_##type},
#define MPG_OF_RESULT(type, name) {#name, offsetof(mpg_result, name), MPG_KIND_##type},
#define MPG_OF_RULE(type, name) {#name, offsetof(mpg_rule, name), MPG_KIND_##type},
#define MPG_OF_PLAN(type, name) {#name, offsetof(mpg_plan, name), MPG_KIND_##type},

static const mpg_member MPG_MEMBERS_OF_PLAN[] = {MPG_PLAN_MEMBERS(MPG_OF_PLAN){NULL, 0, 0}};
static const mpg_member MPG_MEMBERS_OF_STRUCTS[][16] = {
    {MPG_FORMAT_MEMBERS(MPG_OF_FORMAT)}, {MPG_RESULT_MEMBERS(MPG_OF_RESULT)}, {MPG_RULE_MEMBERS(MPG_OF_RULE)}};

/* Those of a struct; NULL for numbers and masks. */
static const mpg_member *mpg_members_of(int kind)
{
    return kind < MPG_KIND_mpg_format ? NULL : MPG_MEMBERS_OF_STRUCTS[kind - MPG_KIND_mpg_format];
}

#endif
