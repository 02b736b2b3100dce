"""Checks code blocks while the site is built, and runs those of the tutorials and how-to pages to show their output.

On the pages that `run_pages` names, ``python`` blocks run one after the other in one namespace, and ``console`` blocks run
their `mpgemm` commands, all in a scratch folder of the page. On other pages, and on `checked_pages`, Python must compile and
commands must parse.
"""

import ast
import contextlib
import fnmatch
import io
import os
import shlex
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from terminal import COLUMNS, in_a_terminal

from mpgemm.cli import main
from mpgemm.cli.common.discovery import command_parser

LOGGER = logging.getLogger(__name__)
#: Commands of a console block that are shown but not run.
NOT_RUN = ("make", "pip", "python", "export", "git", "source", "cd")
#: Commands that answer by their exit status, with the status that means "no".
VERDICTS = {"check": 1}


@contextlib.contextmanager
def _scratch_folder() -> Iterator[None]:
    """Run the body in a temporary folder, with the width of the shown terminal."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["COLUMNS"] = str(COLUMNS)
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.pop("COLUMNS")
            if columns is not None:
                os.environ["COLUMNS"] = columns


def commands(text: str) -> list[list[str]]:
    """Return the words of each command of a console block, without comments."""
    joined = text.replace("\\\n", " ")
    return [shlex.split(line[2:], comments=True) for line in joined.splitlines() if line.startswith("$ ")]


def run_python(code: str, namespace: dict) -> str:
    """Run code and return the text it prints, and the value of the last line if that is an expression."""
    tree = ast.parse(code)
    last = tree.body[-1] if tree.body else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        if isinstance(last, ast.Expr):
            tree.body.pop()
            exec(compile(tree, "<page>", "exec"), namespace)
            value = eval(compile(ast.Expression(last.value), "<page>", "eval"), namespace)
            if value is not None:
                print(value if isinstance(value, str) else repr(value))
        else:
            exec(compile(tree, "<page>", "exec"), namespace)
    return printed.getvalue()


def run_console(text: str) -> str:
    """Run the `mpgemm` commands of a block and return the text they print.

    Raises
    ------
    ValueError
        If a command fails, or is neither `mpgemm` nor in :data:`NOT_RUN`.
    """
    printed, complaints = io.StringIO(), io.StringIO()
    for words in commands(text):
        if words[0] in NOT_RUN:
            continue
        if words[0] != "mpgemm":
            raise ValueError(
                f"the build cannot run {words[0]!r}: use a command of mpgemm, or one of {', '.join(NOT_RUN)}"
            )
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
            status = main(words[1:])
        if status not in (0, VERDICTS.get(words[1])):
            raise ValueError(f"{shlex.join(words)} ended with {status}: {complaints.getvalue().strip()}")
    return printed.getvalue()


def _checked(language: str, text: str) -> None:
    if language == "python":
        compile(text, "<page>", "exec")
        return
    for words in commands(text):
        if words[0] == "mpgemm":
            try:
                with contextlib.redirect_stderr(io.StringIO()) as complaint:
                    command_parser(words[1]).parse_args(words[2:])
            except SystemExit as error:
                if error.code:
                    raise ValueError(complaint.getvalue().strip()) from None


def _output_block(text: str) -> nodes.container:
    block = nodes.literal_block(text, text, language="none")
    return nodes.container("", block, classes=["output"])


def check_blocks(app: Sphinx, doctree: nodes.document) -> None:
    """Run or check the code blocks of a page."""
    page = app.env.docname
    runs = page not in app.config.checked_pages and any(
        fnmatch.fnmatch(page, pattern) for pattern in app.config.run_pages
    )
    if page.startswith(("api/", "notebooks/")):  # docstrings have doctests of their own, notebooks run as notebooks
        return
    namespace: dict = {"__name__": "page"}
    with _scratch_folder():
        for block in list(doctree.findall(nodes.literal_block)):
            language, text = block.get("language"), block.astext()
            if language not in ("python", "console"):
                continue
            try:
                if not runs:
                    _checked(language, text)
                    continue
                printed = run_python(text, namespace) if language == "python" else run_console(text)
            except BaseException as error:
                LOGGER.warning("the %s block fails: %s: %s", language, type(error).__name__, error, location=block)
                continue
            if printed.strip():
                block.parent.insert(block.parent.index(block) + 1, _output_block(in_a_terminal(printed)))


def setup(app: Sphinx) -> dict:
    """Register the check."""
    app.add_config_value("run_pages", [], "env")
    app.add_config_value("checked_pages", [], "env")
    app.connect("doctree-read", check_blocks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
