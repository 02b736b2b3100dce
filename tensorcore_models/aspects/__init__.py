"""Defines the terms that state the aspects of an accumulator family; the families use it, it knows none of them."""
