"""Measure and disturb durable runs: `python -m benchmarks.durable`."""
