"""Offer the names and the behaviour of other packages to code that was written for them."""
