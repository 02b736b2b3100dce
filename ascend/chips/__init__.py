"""Chips as TOML rows with a provenance for every number."""
