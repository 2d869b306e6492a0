"""Answer the requests of an inbox in a browser or over a JSON API."""

from .app import inbox_app
from .guard import Limits
from .visitors import Authenticate, Links, LocalLogin
from .webhook import Webhook

__all__ = ['Authenticate', 'Limits', 'Links', 'LocalLogin', 'Webhook', 'inbox_app']
