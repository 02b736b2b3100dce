"""Probe vectors that find out how a black-box matrix multiply-accumulate computes."""
