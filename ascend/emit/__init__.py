"""Kernels of a plan written out, and kernels run and checked on this machine."""
