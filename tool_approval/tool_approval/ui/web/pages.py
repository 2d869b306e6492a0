"""Whole pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from string import Template

from starlette.requests import Request
from starlette.responses import HTMLResponse

from .cards import Place
from .html import Html, element, joined, markup
from .wording import short


@lru_cache(maxsize=1)
def _template() -> Template:
    return Template(files('tool_approval.ui.web').joinpath('static', 'page.html').read_text('utf-8'))


def base_of(request: Request) -> str:
    """The path below which the page is, without a slash at its end."""
    return str(request.scope.get('root_path', '')).rstrip('/')


def page(
    request: Request,
    title: str,
    *body: str | None,
    place: Place | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    can_log_out: bool = False,
    is_live: bool = False,
) -> HTMLResponse:
    """A page.

    Args:
        request: What it answers.
        title: Its heading.
        *body: Markup, and texts, which are escaped.
        place: For whom; without one there is no navigation.
        status: Of HTTP.
        headers: More of them.
        can_log_out: Whether there is a session that can be ended.
        is_live: Whether its list is kept up to date.
    """
    base = base_of(request)
    written = _template().substitute(
        base=markup(base),
        title=markup(title),
        navigation='' if place is None else _navigation(request, place, can_log_out=can_log_out),
        body=joined(*body),
        live='true' if is_live else 'false',
        token='' if place is None else place.token,
    )
    return HTMLResponse(written, status, headers=dict(headers or {}))


def message_page(
    request: Request, message: str, *, status: int, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """A page that says one thing."""
    told = f'{message[:1].upper()}{message[1:]}.'
    back = element('p', element('a', 'Back to the open requests', href=f'{base_of(request)}/'))
    title = {401: 'Not logged in', 404: 'Not found'}.get(status, 'Refused')
    return page(request, title, element('p', told, class_='notice', role='alert'), back, status=status, headers=headers)


def _navigation(request: Request, place: Place, *, can_log_out: bool) -> Html:
    here = request.url.path.removeprefix(place.base)
    links = [
        element('a', text, href=f'{place.base}{path}', aria_current='page' if here == path else None)
        for text, path in (('Open', '/'), ('History', '/history'))
    ]
    leave = None
    if can_log_out:
        csrf = element('input', type='hidden', name='csrf', value=place.token)
        button = element('button', 'Log out', type='submit')
        leave = element('form', csrf, button, method='post', action=f'{place.base}/logout')
    who = element('span', element('span', 'You are ', class_='spoken'), short(place.visitor.id), class_='who')
    return joined(element('nav', *links, aria_label='Pages'), who, leave)
