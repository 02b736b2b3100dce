"""This module sets and restores the calling thread's floating-point state (fp_state.h)."""


def enter():
    """Set the state in which the package computes, and return the previous state for :func:`leave`."""
    return mpg_fp_enter()


def leave(state):
    """Restore the state that :func:`enter` returned."""
    mpg_fp_leave(state)
