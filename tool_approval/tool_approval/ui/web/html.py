"""Build HTML in which all text is escaped."""

from __future__ import annotations

from html import escape


class Html(str):
    """Markup. Only `element`, `markup` and `joined` create this type from a `str`, and these functions escape the
    text.
    """

    __slots__ = ()


_VOID = frozenset({'input', 'meta', 'link', 'br'})


def element(name: str, /, *children: str | None, **attributes: str | bool | None) -> Html:
    """Return an element.

    Args:
        name: Name of the element, which must be trusted.
        *children: Markup, or texts to escape; `None` is left out.
        **attributes: Values by attribute name, with `_` for `-`; a trailing `_` is dropped. `None` and `False` omit the
            attribute, and `True` writes it without a value.
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
    """Return markup unchanged, and any other text escaped."""
    return text if isinstance(text, Html) else Html(escape(text))


def joined(*parts: str | None) -> Html:
    """Concatenate markup and texts."""
    return Html(''.join(markup(part) for part in parts if part is not None))
