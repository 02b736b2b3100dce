"""Ascend matrix units: chips, block planning, the tile schedule and its two interpreters, SGEMM-cube."""
