"""Recorded tensors of two runs of a model: which module's bits differ first, why, and what becomes of it.

The stub beside this file says where each public name is; a module is imported when one of its names is asked for.
"""

from tensorcore_models.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
