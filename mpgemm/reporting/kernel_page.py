"""A page about one compiled kernel: what it computes, as text and picture, beside its code."""

from collections.abc import Iterator
from html import escape

from mpgemm.reporting.html_report import document
from tensorcore_models.compiled import KernelRecipe
from tensorcore_models.compiled.picture import expression_svg, lines_of
from tensorcore_models.compiled.program import KernelProgram
from tensorcore_models.orders.trees import tree_of_order

#: Expressions that are drawn; the text has as many.
_SHOWN = 4
#: Parts of a sum that the picture of its order shows.
_PARTS = 4


def kernel_page(program: KernelProgram, recipe: KernelRecipe) -> str:
    """Return the page: expressions with their pictures, the order of k, what it rests on, the code with the lines that are
    named."""
    body = "\n".join([*_expressions(recipe), *_order(recipe), *_assumptions(recipe), *_code(program, recipe)])
    return document(f"{recipe.kernel}, {program.target}", body)


def _expressions(recipe: KernelRecipe) -> Iterator[str]:
    yield f"<section>\n<h2>What it computes: {escape(recipe.output)}</h2>"
    for number, form in enumerate(recipe.forms[:_SHOWN]):
        yield f"<h3>{len(form.outputs)} elements</h3>\n<pre>{_linked(recipe.outline(number))}</pre>"
        yield f"<figure>{expression_svg(recipe, number)}</figure>"
    if len(recipe.forms) > _SHOWN:
        yield f'<p class="note">{len(recipe.forms) - _SHOWN} more expressions.</p>'
    yield "</section>"


def _linked(lines: list[str]) -> str:
    """Return lines of a tree, each "(line 12)" a link into the code."""
    parts = []
    for line in lines:
        head, mark, rest = line.rpartition("(line ")
        number, closed, tail = rest.partition(")")
        if mark and closed and number.isdigit():
            parts.append(f'{escape(head)}(<a href="#L{number}">line {number}</a>){escape(tail)}')
        else:
            parts.append(escape(line))
    return "\n".join(parts)


def _order(recipe: KernelRecipe) -> Iterator[str]:
    try:
        library = recipe.library()
    except ValueError as error:
        yield f'<p class="caveat">Not a recipe of libraries: {escape(str(error))}</p>'
        return
    tree = tree_of_order(library.order)
    yield f"<section>\n<h2>Order of k on {escape(library.engine.label)}</h2>"
    yield f"<pre>{escape(chr(10).join(tree.outline()))}</pre>\n<figure>{tree.svg(shown=_PARTS)}</figure>\n</section>"


def _assumptions(recipe: KernelRecipe) -> Iterator[str]:
    if recipe.assumptions:
        yield "<h2>Assumed</h2>\n<ul>" + "".join(f"<li>{escape(each)}</li>" for each in recipe.assumptions) + "</ul>"


def _code(program: KernelProgram, recipe: KernelRecipe) -> Iterator[str]:
    """Yield the text; lines that the expressions name are marked."""
    named = set().union(*(lines_of(form.root) for form in recipe.forms))
    yield "<section>\n<h2>Code</h2>\n<pre>"
    for number, line in enumerate(program.text.splitlines(), 1):
        text = f"{number:5}  {escape(line)}"
        yield f'<mark id="L{number}">{text}</mark>' if number in named else text
    yield "</pre>\n</section>"
