"""Encoding, decoding, rounding and splitting of arrays."""
