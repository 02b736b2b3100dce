"""Results step by step: `dots` and `scaled_dots` of one dot product, `two_engines` where two units part on it."""
