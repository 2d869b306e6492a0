"""Adapt agent frameworks, one package each. Only the framework's own package imports it."""
