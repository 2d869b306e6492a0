"""Build HTML in which all text is escaped."""

from __future__ import annotations

from html import escape


class Html(str):
    """Markup. To create `Html` from a `str`, use `element`, `markup` or `joined`, which escape the text."""

    __slots__ = ()


_VOID = frozenset({'input', 'meta', 'link', 'br'})


def element(name: str, /, *children: str | None, **attributes: str | bool | None) -> Html:
    """Return an element.

    Args:
        name: Name of the element; never untrusted text.
        *children: Markup or texts. Texts are escaped, and `None` is left out.
        **attributes: Attributes of the element. In names, `_` becomes `-`, and a trailing `_` is removed. The value
            `True` writes an attribute without a value; `None` and `False` omit the attribute.
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
