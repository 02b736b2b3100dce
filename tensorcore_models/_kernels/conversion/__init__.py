"""This package encodes, decodes, rounds and splits arrays."""
