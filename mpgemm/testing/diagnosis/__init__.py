"""What a kernel's failing result looks like: where the elements are, and which fault explains them."""
