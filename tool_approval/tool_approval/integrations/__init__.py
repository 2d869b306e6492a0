"""Adapt agent frameworks, with one package for each. A framework is imported only by its package."""
