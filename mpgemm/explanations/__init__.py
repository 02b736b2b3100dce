"""Explains results step by step: one dot product (`dots`, `scaled_dots`), and two engines that differ on it (`two_engines`)."""
