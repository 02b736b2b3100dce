"""This package holds the parts that all kernels share: the CPU, operands in lanes, the driver loop, workspaces."""
