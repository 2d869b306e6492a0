"""Where requests are kept. PostgreSQL needs the extra `postgres`, and is imported from its module."""

from .sqlite import SQLiteStore, default_path

__all__ = ('SQLiteStore', 'default_path')
