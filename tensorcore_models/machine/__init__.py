"""The machine that the kernels run on: its instruction sets, threads, and memory that is kept from call to call."""
