"""Adapt agent frameworks, one package each. Only the package of a framework imports that framework."""
