"""The instruction catalogue: rows of data, one module for each vendor."""
