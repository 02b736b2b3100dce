"""Holds the modules that several commands share: the parser, options and their effects, the printing of results."""
