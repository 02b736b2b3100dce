"""The machine that runs Programs over lanes."""
