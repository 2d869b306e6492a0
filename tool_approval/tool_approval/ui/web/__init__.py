"""Asks in a browser, and by a JSON API: an ASGI application on an inbox."""

from .app import inbox_app
from .limits import Limits
from .local_login import LocalLogin
from .visitors import Authenticate

__all__ = ['Authenticate', 'Limits', 'LocalLogin', 'inbox_app']
