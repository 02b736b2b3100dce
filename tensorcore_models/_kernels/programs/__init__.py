"""This package is the machine that runs recorded programs over lanes."""
