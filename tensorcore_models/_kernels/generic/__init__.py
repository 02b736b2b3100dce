"""This package runs every accumulator, in scalar integers and in vectors of 64-bit integers."""
