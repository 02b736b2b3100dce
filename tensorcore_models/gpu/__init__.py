"""Emulate matrix units on a GPU bit for bit, in Triton, without matrix instructions (docs/units_on_gpus.md)."""
