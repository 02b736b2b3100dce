"""This package reports on plans and simulations: sentences, tables, figures, fits to published numbers, tiling fields."""
