"""Chips are TOML rows; every number has a provenance."""
