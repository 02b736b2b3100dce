"""A campaign records results of a GPU and compares them with the models, part by part, within a budget.

``mpgemm campaign --out DIR`` runs it (docs/hardware.md). `parts` is the table of the parts; each is a module whose
`tasks` yields a row's key with the function that computes the rest of the row. `jobs` runs the parts in processes
(`worker`), side by side except for those that take times. `folder` keeps their rows, `summary` makes tables for
``mpgemm report``. `device` is the GPU, or a stand-in for one.
"""
