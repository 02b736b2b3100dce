"""Runners for real matrix hardware; importing needs none, use says what is missing."""
