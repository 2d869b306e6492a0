"""Human approval for tool calls. This is the frame of the package: its parts are added layer by layer."""

__version__ = '0.1.0'

__all__ = ('__version__',)
