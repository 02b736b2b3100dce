"""This package computes integer dot products."""
