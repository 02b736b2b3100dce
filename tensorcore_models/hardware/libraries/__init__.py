"""This package makes engines of library calls on a GPU or NPU, and finds orders of k that explain their results."""
