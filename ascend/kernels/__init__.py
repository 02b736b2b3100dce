"""Kernels: each a class of schedules with its geometry, buffers, time, operations and product."""
