"""This package defines the programs of a core's pipes: operations, templates, loops, phases, and passes of the vector units."""
