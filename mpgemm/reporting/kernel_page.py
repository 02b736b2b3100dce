"""Makes a page about one compiled kernel with its expressions, as text and pictures, and its code."""

from collections.abc import Iterator
from html import escape

from mpgemm.reporting.html_report import document
from tensorcore_models.compiled import KernelRecipe
from tensorcore_models.compiled.picture import expression_svg, lines_of
from tensorcore_models.compiled.program import KernelProgram
from tensorcore_models.orders.trees import tree_of_order

#: Largest number of expressions that are shown, as text and as pictures.
_SHOWN = 4
#: Largest number of parts of a sum in the picture of its order.
_PARTS = 4


def kernel_page(program: KernelProgram, recipe: KernelRecipe) -> str:
    """Return a page with a kernel's expressions and pictures, its order of k, the assumptions, and its code.

    The lines of code that the expressions name are marked.
    """
    body = "\n".join([*_expressions(recipe), *_order(recipe), *_assumptions(recipe), *_code(program, recipe)])
    return document(f"{recipe.kernel}, {program.target}", body)


def _expressions(recipe: KernelRecipe) -> Iterator[str]:
    yield f"<section>\n<h2>Expressions of {escape(recipe.output)}</h2>"
    for number, form in enumerate(recipe.forms[:_SHOWN]):
        yield f"<h3>{len(form.outputs)} elements</h3>\n<pre>{_linked(recipe.outline(number))}</pre>"
        yield f"<figure>{expression_svg(recipe, number)}</figure>"
    if len(recipe.forms) > _SHOWN:
        yield f'<p class="note">{len(recipe.forms) - _SHOWN} more expressions.</p>'
    yield "</section>"


def _linked(lines: list[str]) -> str:
    """Return the lines of a tree as HTML in which each "(line 12)" is a link into the code."""
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
        yield f'<p class="caveat">The kernel is no library recipe: {escape(str(error))}</p>'
        return
    tree = tree_of_order(library.order)
    yield f"<section>\n<h2>Order of k on {escape(library.engine.label)}</h2>"
    yield f"<pre>{escape(chr(10).join(tree.outline()))}</pre>\n<figure>{tree.svg(shown=_PARTS)}</figure>\n</section>"


def _assumptions(recipe: KernelRecipe) -> Iterator[str]:
    if recipe.assumptions:
        yield (
            "<h2>Assumptions</h2>\n<ul>" + "".join(f"<li>{escape(each)}</li>" for each in recipe.assumptions) + "</ul>"
        )


def _code(program: KernelProgram, recipe: KernelRecipe) -> Iterator[str]:
    """Yield the code as HTML, with the lines marked that the expressions name."""
    named = set().union(*(lines_of(form.root) for form in recipe.forms))
    yield "<section>\n<h2>Code</h2>\n<pre>"
    for number, line in enumerate(program.text.splitlines(), 1):
        text = f"{number:5}  {escape(line)}"
        yield f'<mark id="L{number}">{text}</mark>' if number in named else text
    yield "</pre>\n</section>"
