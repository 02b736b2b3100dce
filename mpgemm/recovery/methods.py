"""The table of recovery methods: its rows by name, with options applied."""

import difflib

from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.rows import ROWS


def list_methods() -> list[RecoveryMethod]:
    """All rows, in the order of the tables."""
    return list(ROWS.values())


def get_method(name: str, **options) -> RecoveryMethod:
    """The method of that name, with options applied; "multiword" and the others take theirs as keywords.

    Parameters
    ----------
    name : str
        As in :func:`list_methods`. ``"name:option=value,..."`` sets options, too (as the command line does).
    **options
        See each row's `options`.

    Raises
    ------
    ValueError
        If the name or an option is unknown.

    Examples
    --------
    >>> get_method("ootomo").passes, get_method("multiword", format="bf16", words=3).passes
    (3, 6)
    """
    if isinstance(name, RecoveryMethod):
        return name.with_options(**options)
    if not isinstance(name, str):
        raise TypeError(f"a method is a name or a RecoveryMethod, got {type(name).__name__}")
    base, _, text = name.partition(":")
    if base not in ROWS:
        near = difflib.get_close_matches(base.lower(), ROWS, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "."
        raise ValueError(f"unknown method {base!r}{hint} Known: {', '.join(ROWS)}")
    return ROWS[base].with_options(**_parsed(text), **options)


def _parsed(text: str) -> dict:
    """ "words=3,format=bf16" as a dictionary; numbers and True/False are recognised."""
    options: dict = {}
    for item in filter(None, text.split(",")):
        key, separator, value = item.partition("=")
        if not separator:
            raise ValueError(f"method option {item!r}: expected NAME=VALUE")
        if key in options:
            raise ValueError(f"method option {key!r} is given twice")
        if value in ("True", "False", "true", "false"):
            options[key] = value.lower() == "true"
        else:
            options[key] = int(value) if value.lstrip("-").isdigit() else value
    return options
