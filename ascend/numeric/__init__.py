"""The interpreter that computes a schedule's product: what callers give, words of operands, the task of the kernel."""
