"""Provide the names and the behaviour of other packages, for code that was written for these packages."""
