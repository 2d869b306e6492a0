"""Measures the loop layer against the host's own ways to approve tool calls. Run `python -m benchmarks.loop`."""
