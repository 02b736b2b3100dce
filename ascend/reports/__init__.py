"""Reports on plans and simulations: sentences, tables, figures, the fit to published numbers, tiling fields."""
