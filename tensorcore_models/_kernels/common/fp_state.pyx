"""The calling thread's floating-point state, as fp_state.h sets and restores it."""


def enter():
    """Set the state that the package computes in. Returns the one before, for :func:`leave`."""
    return mpg_fp_enter()


def leave(state):
    """Restore what :func:`enter` returned."""
    mpg_fp_leave(state)
