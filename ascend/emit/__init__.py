"""This package writes a plan's kernel as source files, and runs and checks kernels on this machine."""
