"""Defines the order of a sum over k as data, chains and the sums that join them (`order`), and draws it as trees (`trees`)."""
