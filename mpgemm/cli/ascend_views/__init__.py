"""Makes the output of `mpgemm plan` and `mpgemm simulate`: plans, advice, profiles, published numbers."""
