"""A campaign: what a GPU computes, recorded and compared with the models, part by part, within a budget.

``mpgemm campaign --out DIR`` runs it (docs/hardware.md). `parts` is the table of the parts; each is a module whose `tasks`
yields what a row is of and what computes the rest of it. `jobs` runs them side by side in processes (`worker`), those that
take times alone; `folder` keeps their rows, `summary` makes tables of them that ``mpgemm report`` shows. `device` is the GPU,
or what stands in for one.
"""
