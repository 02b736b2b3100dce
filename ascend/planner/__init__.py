"""Plans of a product: candidates, their closed forms, the simulated best, and what there is besides them."""
