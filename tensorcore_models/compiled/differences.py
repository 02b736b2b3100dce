"""Names the first operation in which the expressions of two kernels differ, in one sentence."""

from .chains import accumulation, pieces_text
from .common_forms import CommonForm
from .common_texts import FEWEST, Texts, leaves_in_order
from .nodes import Applied, Node, Step
from .normal_form import Forms
from .solving import side_by_side

#: Most characters of the description of one kernel's operation.
_WIDEST = 150


def difference(first: tuple[CommonForm, ...], second: tuple[CommonForm, ...]) -> str:
    """Return the sentence that says what each kernel has where their expressions first differ.

    Their normal forms must be different.
    """
    forms = Forms()
    roots = _first_apart(first, second, forms)
    if roots is None:
        return "they write different elements"
    here, there = roots
    while (pairs := side_by_side(here, there, forms)) is not None:
        apart = [pair for pair in pairs if forms.of(pair[0]) != forms.of(pair[1])]
        if (text := _sums(here, there, forms)) is not None:
            return text
        computed = [pair for pair in apart if all(isinstance(node, Applied | Step) for node in pair)]
        same_chains = isinstance(here, Step) and _told(here) != _told(there)
        if same_chains or not (computed or apart):
            break
        here, there = (computed or apart)[0]
    return f"the first has {_told(here)}, the second {_told(there)}"


def _first_apart(
    first: tuple[CommonForm, ...], second: tuple[CommonForm, ...], forms: Forms
) -> tuple[Node, Node] | None:
    """Return the two expressions of the first element in which the kernels differ."""
    roots = {int(i): form.root for form in second for i in form.outputs}
    for form in first:
        for i in form.outputs.tolist():
            if i in roots and forms.of(roots[i]) != forms.of(form.root):
                return form.root, roots[i]
    return None


def _sums(first: Node, second: Node, forms: Forms) -> str | None:
    """Return how two sums of several terms differ; None for other nodes, and for sums whose terms match in pairs."""
    if not (isinstance(first, Applied) and isinstance(second, Applied)):
        return None
    if first.meaning is None or first.meaning.operation != "add" or not first.meaning.floating:
        return None
    (left, shape), (right, other) = leaves_in_order(first), leaves_in_order(second)
    if min(len(left), len(right)) < FEWEST:
        return None
    where = f"{first.name} (lines {first.line} and {second.line})"
    if sorted(map(repr, map(forms.of, left))) == sorted(map(repr, map(forms.of, right))):
        return f"both add the same {len(left)} terms by {where}, in another order"
    if len(left) != len(right) or shape != other:
        return f"the first adds {len(left)} terms by {where}, the second {len(right)}; the sums have different parts"
    return None


def _told(node: Node) -> str:
    """Return a node by its operation and line, or a chain by the products that it sums."""
    chain = accumulation(node, texts := Texts())
    if chain is not None:
        runs = [
            f"{run.left} x {run.right}" + (f" over {run.letter} {pieces_text(run.ks)}" if run.ks else "")
            for run in chain.runs
        ]
        more = f" and {len(runs) - 2} more" if len(runs) > 2 else ""
        text = f"a chain of {chain.runs[0].unit} (line {chain.runs[0].line}) of {'; '.join(runs[:2])}{more}"
    elif isinstance(node, Applied):
        text = f"{node.name} (line {node.line}) of {', '.join(map(texts.of, node.operands))}"
    else:
        text = node.text()
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
