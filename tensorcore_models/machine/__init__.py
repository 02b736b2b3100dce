"""This package handles the machine that the kernels run on: instruction sets, threads and reused memory."""
