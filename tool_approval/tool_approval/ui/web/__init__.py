"""Asks in a browser, and by a JSON API: an ASGI application on an inbox."""

from .app import inbox_app
from .guard import Limits
from .visitors import Authenticate, LocalLogin

__all__ = ['Authenticate', 'Limits', 'LocalLogin', 'inbox_app']
