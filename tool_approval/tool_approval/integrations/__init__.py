"""Adapt agent frameworks, with one package for each. Only the package of a framework imports that framework."""
