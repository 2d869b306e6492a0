"""Markup in which everything that is not markup is escaped."""

from __future__ import annotations

from html import escape


class Html(str):
    """Markup. A plain `str` never becomes it but by `element`, which escapes it."""

    __slots__ = ()


_VOID = frozenset({'input', 'meta', 'link', 'br'})


def element(name: str, /, *children: str | None, **attributes: str | bool | None) -> Html:
    """An element.

    Args:
        name: Of the element; ours.
        *children: Markup, and texts, which are escaped; `None` is left out.
        **attributes: By name, with `_` for `-` and none at the end. `None` and `False` are left out, `True` stands
            without a value.
    """
    parts = [f'<{name}']
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        written = key.rstrip('_').replace('_', '-')
        parts.append(f' {written}' if value is True else f' {written}="{escape(value)}"')
    parts.append('>')
    if name not in _VOID:
        parts += [*(markup(child) for child in children if child is not None), f'</{name}>']
    return Html(''.join(parts))


def markup(text: str) -> Html:
    """Markup as it is, and a text escaped."""
    return text if isinstance(text, Html) else Html(escape(text))


def joined(*parts: str | None) -> Html:
    """Some markup or texts after each other."""
    return Html(''.join(markup(part) for part in parts if part is not None))
