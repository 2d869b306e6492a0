"""Store requests in SQLite or PostgreSQL. Import `PostgresStore` from `.postgres`; it needs the extra `postgres`."""

from .sqlite import SQLiteStore, default_path

__all__ = ('SQLiteStore', 'default_path')
