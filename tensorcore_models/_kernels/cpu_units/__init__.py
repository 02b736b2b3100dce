"""This package runs matrix units of CPUs: VDPBF16PS, AMX and BFMMLA, and x86's units in plain C."""
