"""The views that `plan` and `simulate` give of Ascend: plans, advice, profiles, published numbers."""
