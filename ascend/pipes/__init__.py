"""This package times a schedule: it simulates and records the operations on the pipes of a core."""
