"""Looks up recovery methods by name and applies their options."""

import difflib

from mpgemm.recovery.framework_names import FRAMEWORK_NAMES, framework_name
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.rows import ROWS


def list_methods() -> list[RecoveryMethod]:
    """Return all recovery methods, in the order of :data:`mpgemm.recovery.rows.ROWS`."""
    return list(ROWS.values())


def get_method(name: str, **options) -> RecoveryMethod:
    """Return the recovery method called `name`, with its options set by keyword.

    Parameters
    ----------
    name : str
        Name of a method (:func:`list_methods`), or a framework's name such as "3xTF32" or "allow_tf32"
        (:data:`mpgemm.recovery.framework_names.FRAMEWORK_NAMES`); case does not matter. ``"name:option=value,..."``, as on the
        command line, also sets options.
    **options
        Options of the method; ``get_method(name).options`` lists them.

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
        raise TypeError(f"method is a {type(name).__name__}, expected a name or a RecoveryMethod")
    base, _, text = name.partition(":")
    if (known := framework_name(base)) is not None:
        meant, _, own = known.method.partition(":")
        return ROWS[meant].with_options(**_parsed(own) | _parsed(text) | options)
    row = ROWS.get(base.lower())
    if row is None:
        names = {**{each.lower(): each for each in ROWS}, **{key: each.name for key, each in FRAMEWORK_NAMES.items()}}
        near = difflib.get_close_matches(base.lower().replace("-", "_"), names, 3)
        hint = f" (did you mean {' or '.join(repr(names[each]) for each in near)}?)" if near else ""
        raise ValueError(
            f"unknown method {base!r}{hint}. Known: {', '.join(ROWS)}; names of frameworks: "
            f"{', '.join(each.name for each in FRAMEWORK_NAMES.values())}"
        )
    return row.with_options(**_parsed(text), **options)


def is_method(name: str) -> bool:
    """Return whether a name, without its options and in any case, is that of a method or a framework's name of one."""
    base = name.partition(":")[0]
    return base.lower() in ROWS or framework_name(base) is not None


def _parsed(text: str) -> dict:
    """Return "words=3,format=bf16" as a dictionary; numbers and True/False are converted."""
    options: dict = {}
    for item in filter(None, text.split(",")):
        key, separator, value = item.partition("=")
        if not separator:
            raise ValueError(f"got the method option {item!r}, expected NAME=VALUE")
        if key in options:
            raise ValueError(f"method option {key!r} is given twice; give each option once")
        if value in ("True", "False", "true", "false"):
            options[key] = value.lower() == "true"
        else:
            options[key] = int(value) if value.lstrip("-").isdigit() else value
    return options
