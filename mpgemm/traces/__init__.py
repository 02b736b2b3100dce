"""This package compares recorded tensors of two runs of a model: the first differing module, its cause and its effects.

The stub beside this file maps each public name to its module, which is imported when the name is first used.
"""

from tensorcore_models.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
