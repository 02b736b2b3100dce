"""The order of a sum over k as data: chains and the sums that join them (`order`), the same drawn as trees (`trees`)."""
