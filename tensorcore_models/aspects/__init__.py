"""What the aspects of an accumulator family are stated in; the families use it, it knows none of them."""
