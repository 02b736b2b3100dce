"""This package defines matrix engines: the base class, custom units, users' functions and instructions of the catalogue."""
