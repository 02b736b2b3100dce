"""Recovery methods: rows of data, and one way to run them on any matrix engine.

`methods` and `rows` describe them, `run` splits, multiplies and joins, `arithmetic` puts the products of floating-point words
together; `integer_words`, `integer_joins` and `integer_run` do that for integer words.
"""
