"""This module lists the aspects of arithmetic that a family states by methods, each with its fallback."""

from typing import NamedTuple


class Aspect(NamedTuple):
    """`Aspect` is one thing that a family states about its arithmetic.

    `method` states it, together with `others`. `fallback` describes what happens if a family lacks the method, and `derived`
    says whether the fallback is made from `pass_bits`.
    """

    title: str
    method: str
    fallback: str
    others: tuple[str, ...] = ()
    derived: bool = False


#: Aspects in the order in which they are worth writing. docs/families.md shows the aspects of each family.
ASPECTS = (
    Aspect("integers", "pass_bits", "NotImplementedError is raised, because nothing can be computed"),
    Aspect(
        "words",
        "words",
        "the words are derived from `pass_bits`; if that is impossible, the name of the class stands for them",
        ("scales_products", "inside"),
        derived=True,
    ),
    Aspect(
        "tree",
        "add_step",
        "the tree is derived from `pass_bits`; if that is impossible, no tree is drawn",
        ("shows_order",),
        derived=True,
    ),
    Aspect(
        "kernels",
        "plan_fields",
        "`pass_bits` runs, recorded as a Program if it is written in `p.arithmetic`, else in plain Python",
        ("arrangement", "operand_tables", "form", "conversion"),
    ),
    Aspect(
        "bound",
        "step_error",
        "the bound is derived from `pass_bits`; if that is impossible, ValueError is raised",
        ("group_facts", "group_facts_of_formats", "unrounded"),
        derived=True,
    ),
    Aspect("search", "searches", "`identify` does not look for the family", ("simplest",)),
    Aspect(
        "terms",
        "pass_term",
        "`pass_bits` runs on terms; if it cannot be recorded, Unencodable is raised",
        ("parametric",),
        derived=True,
    ),
    Aspect("probe vectors", "probe", "there are no probe vectors"),
    Aspect("symmetries", "interchangeable", "no two products are known to be interchangeable", ("idle",)),
)
