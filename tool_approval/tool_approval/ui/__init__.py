"""Ways to ask a person. Each is a package of its own, and needs an extra of its own."""
