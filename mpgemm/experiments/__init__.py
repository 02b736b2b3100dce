"""Runs methods on cases, judges and compares them; all experiments use `cases`, `tasks`, `journal` and `outcome`."""
