"""Compare the cost of this project's packages with that of their hosts. Start with `python -m benchmarks.loop`."""
