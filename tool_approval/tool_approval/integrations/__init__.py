"""Adapters for agent frameworks, one package each; each imports its framework, and nothing else does."""
