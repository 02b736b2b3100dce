"""Defines instructions as rows with a meaning, which the machines of PTX and AMDGCN share.

:mod:`.meaning` is the row, :mod:`.types` holds its types, :mod:`.operations` the one table of functions that compute meanings.
The readers of the two languages (``ptx/meanings.py``, tables in ``amdgcn/``) turn instruction names into rows. Expressions,
moves, normal forms and solver terms read rows.
"""
