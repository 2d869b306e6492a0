"""A press of a button, read from what Slack sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from tool_approval.inbox.approvers import LONGEST_NAME

from .target import Target
from .views import LONGEST_NOTE, NOTE_BLOCK, NOTE_INPUT

_Body = TypeVar('_Body', bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class Press:
    """Who has pressed, where, and what it was about."""

    user_id: str
    """Slack's id of the person."""
    user_name: str | None
    """What Slack calls the person. Hostile text: people choose it."""
    target: Target
    """What the button was about."""
    trigger_id: str = ''
    """Opens a view for the person, within three seconds."""
    timestamp: str | None = None
    """Of the message that the button is in; `None` in a view."""
    view_id: str | None = None
    """Of the view that the button is in; `None` in a message."""


class _User(BaseModel):
    id: str = Field(min_length=1, max_length=LONGEST_NAME)
    name: str | None = None
    username: str | None = None


class _Action(BaseModel):
    value: str = Field(max_length=2000)


class _Container(BaseModel):
    message_ts: str | None = None
    view_id: str | None = None


class _Press(BaseModel):
    user: _User
    actions: list[_Action] = Field(min_length=1, max_length=1)
    trigger_id: str = ''
    container: _Container = _Container()


class _Input(BaseModel):
    value: str | None = Field(default=None, max_length=LONGEST_NOTE)


class _State(BaseModel):
    values: dict[str, dict[str, _Input]]


class _View(BaseModel):
    private_metadata: str = Field(max_length=3000)
    state: _State


class _Form(BaseModel):
    user: _User
    view: _View


def read_press(body: Mapping[str, Any]) -> Press:
    """What a press says.

    Raises:
        ValueError: It is not one of a button of ours.
    """
    read = _read(_Press, body)
    return Press(
        user_id=read.user.id,
        user_name=_name(read.user),
        target=Target.read(read.actions[0].value),
        trigger_id=read.trigger_id,
        timestamp=read.container.message_ts,
        view_id=read.container.view_id,
    )


def read_note(body: Mapping[str, Any]) -> tuple[Press, str | None]:
    """What a form with a note says, and the note; `None` if nothing was written.

    Raises:
        ValueError: It is not our form.
    """
    read = _read(_Form, body)
    written = read.view.state.values.get(NOTE_BLOCK, {}).get(NOTE_INPUT, _Input()).value
    press = Press(user_id=read.user.id, user_name=_name(read.user), target=Target.read(read.view.private_metadata))
    return press, (written or '').strip() or None


def _read(kind: type[_Body], body: Mapping[str, Any]) -> _Body:
    try:
        return kind.model_validate(body)
    except ValidationError:
        # Not pydantic's own, whose text quotes what was sent; it is logged.
        raise ValueError('this is no press of a button of an approval') from None


def _name(user: _User) -> str | None:
    return (user.name or user.username or '')[:LONGEST_NAME] or None
