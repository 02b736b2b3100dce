"""Integer dot products."""
