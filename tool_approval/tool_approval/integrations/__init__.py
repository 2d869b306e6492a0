"""Adapt agent frameworks, with one package for each. Each framework is imported only by the package that adapts it."""
