"""Answer the requests of an inbox in a browser or over a JSON API."""

from .app import inbox_app
from .guard import Limits
from .visitors import Authenticate, LocalLogin

__all__ = ['Authenticate', 'Limits', 'LocalLogin', 'inbox_app']
