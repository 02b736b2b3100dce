"""Experiments that reproduce published figures and claims."""
