"""Names and behaviour of other packages, for code that was written for them."""
