"""KEY=NUMBER on the command line."""

from collections.abc import Sequence


def numbers_of(texts: Sequence[str], option: str) -> dict[str, float]:
    """The numbers of KEY=NUMBER texts by their keys; `option` is what messages call them."""
    found: dict[str, float] = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"{option} {text!r}: expected KEY=NUMBER") from None
        if key in found:
            raise ValueError(f"{option} gives {key} twice, {found[key]:g} and {number:g}: expected one value")
        found[key] = number
    return found
