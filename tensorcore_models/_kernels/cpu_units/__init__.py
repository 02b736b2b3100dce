"""Matrix units of CPUs: VDPBF16PS, AMX and BFMMLA, and x86's in plain C."""
