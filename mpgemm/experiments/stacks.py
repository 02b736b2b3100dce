"""Judges a stack of products: in how many members SGEMM-cube is as accurate as FP32, and which members are the worst.

The setting is chosen for all members together; each member is then judged in this setting like a single product
(:mod:`mpgemm.experiments.judging`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from mpgemm.experiments.cases import Case
from mpgemm.experiments.evaluate import Record
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.judging import judge, preferred_setting, setting_of
from mpgemm.experiments.standing import STATUSES
from mpgemm.experiments.verdict import EVIDENCE, HEADLINES, STEPS, CubeSetting, Verdict, step_sentence
from tensorcore_models.results import Result

#: Largest number of members that are named in sentences.
WORST = 5


@dataclass(frozen=True, repr=False)
class StackVerdict(Result):
    """`StackVerdict` holds the verdict on a stack of products.

    Attributes
    ----------
    group : str
        Name of the stack.
    members : int
        Number of products that were judged.
    status : str
        Worst status of the members.
    counts : dict of str to int
        Number of members by status, worst status first.
    depends_on_step_order : int
        Number of members whose status differs between the roundings inside a cube step.
    recommended : CubeSetting
        Setting that is recommended for all members.
    same : tuple of CubeSetting
        Other settings whose errors are practically equal.
    scaled : int
        Number of members whose rows and columns must be scaled.
    worst : tuple of Verdict
        Up to five members, worst first, that are less accurate than FP32 with either rounding, or without scaled rows and
        columns.
    """

    group: str
    members: int
    status: str
    counts: Mapping[str, int]
    depends_on_step_order: int
    recommended: CubeSetting
    same: tuple[CubeSetting, ...]
    scaled: int
    worst: tuple[Verdict, ...]

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {**asdict(self), "worst": [member.to_dict() for member in self.worst], "text": self.sentences()}

    def to_rows(self) -> list[dict]:
        """Return one row with the number of members for each status."""
        return [{"status": status, "members": members} for status, members in self.counts.items()]

    def __repr__(self) -> str:
        return f"<StackVerdict: {self.members} members, {self.status}; {self.recommended}>"

    def sentences(self) -> list[str]:
        """Return the decision, then one sentence for each fact that qualifies it."""
        if len(self.counts) == 1:
            found = f"{HEADLINES[self.status]} in all {self.members} pairs"
        else:
            found = ", ".join(f"{HEADLINES[status].partition(',')[0]} in {n}" for status, n in self.counts.items())
            found = f"{found} of {self.members} pairs"
        lines = [f"Verdict: {found}{'' if self.depends_on_step_order else ', however the cube rounds inside a step'}."]
        if self.depends_on_step_order:
            sides = "; ".join(f"{STEPS[step]}, {why}" for step, why in EVIDENCE.items())
            lines.append(
                f"The verdict follows the first of these roundings: {sides}. The other gives another verdict on "
                f"{self.depends_on_step_order} pairs."
            )
        for member in self.worst:
            how = "scaled, " * member.recommended.row_scaling
            lines.append(f"{member.group}: {how}{step_sentence(member.judged[0], member)}")
        if self.scaled:
            lines.append(
                f"{self.scaled} of {self.members} pairs need their rows and columns scaled (method sgemm_cube_scaled)."
            )
        end = (
            "" if self.status == "as accurate" and not self.depends_on_step_order else " FP32 where those bits matter."
        )
        return [lines[0], *(f"  {line}" for line in [*lines[1:], f"Use {self.recommended}.{end}"])]


def judge_stack(cases: Sequence[Case], methods: Sequence[GemmMethod], records: Sequence[Record]) -> StackVerdict | None:
    """Return the verdict on the members of a stack.

    cases: members of the stack, all of one group.
    records: records of all methods on the members; records of other inputs are ignored.
    Returns None if FP32 or SGEMM-cube without scaled rows was not measured, or if the products have no elements.
    """
    group = cases[0].group
    by_case: dict[str, list[Record]] = {}
    for record in records:
        if record.group == group:
            by_case.setdefault(record.case, []).append(replace(record, group=record.case))
    found = preferred_setting(methods, [record for record in records if record.group == group])
    if found is None:
        return None
    setting, same = found
    used = [method for method in methods if (own := setting_of(method)) is None or own == setting or own.row_scaling]
    judged = (judge(replace(case, group=case.label), used, by_case[case.label]) for case in cases)
    members = [verdict for verdict in judged if verdict is not None]
    if not members:
        return None
    counts = Counter(member.status for member in members)
    ranked = sorted(members, key=_standing)
    return StackVerdict(
        group, len(members), ranked[0].status,
        {status: counts[status] for status in reversed(STATUSES) if counts[status]},
        sum(member.depends_on_step_order for member in members), setting, same,
        sum(member.recommended.row_scaling for member in members),
        tuple([member for member in ranked if _to_look_at(member)][:WORST]),
    )  # fmt: skip


def _to_look_at(member: Verdict) -> bool:
    return member.status != "as accurate" or member.depends_on_step_order or member.recommended.row_scaling


def _standing(member: Verdict) -> tuple[int, float]:
    """Return a sort key of verdicts that puts the worst first."""
    return -STATUSES.index(member.status), min(min(j.differences.values()) for j in member.judged)
