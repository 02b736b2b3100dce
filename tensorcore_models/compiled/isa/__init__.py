"""Instructions as rows with a meaning, which the machines of PTX and AMDGCN share.

:mod:`.meaning` is the row, :mod:`.types` its types, :mod:`.operations` the one table of functions that compute meanings. The
readers of the two languages (``ptx/meanings.py``, tables in ``amdgcn/``) turn names into rows; expressions, moves, normal forms
and terms of solvers read rows.
"""
