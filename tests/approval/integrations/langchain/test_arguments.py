"""Arguments of every kind of tool, in the one form that approvals are about."""

import sys
from collections.abc import Iterable
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, Tool, tool
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from tool_approval.integrations.langchain.calls import definition_digest, read_arguments, schema_of


def mcp_tool() -> BaseTool:
    """A tool as the adapters for MCP make them: its schema is JSON, and nothing validates before the server."""

    async def call(**arguments: Any) -> str:
        return str(arguments)

    schema = {'type': 'object', 'properties': {'path': {'type': 'string'}}, 'required': ['path']}
    return StructuredTool(name='read', description='Read a file.', args_schema=schema, coroutine=call)


class Untyped(BaseTool):
    name: str = 'untyped'
    description: str = 'A tool without a schema.'

    def _run(self, path: str, depth: int = 1) -> str:
        return path * depth


class Open(BaseTool):
    name: str = 'open'
    description: str = 'A tool that takes anything.'

    def _run(self, **kwargs: Any) -> str:
        return str(kwargs)


@tool
def read(path: str, depth: int = 1) -> str:
    """Read."""
    return path


class Aliased(BaseModel):
    path: str = Field(alias='file')


@tool(args_schema=Aliased)
def aliased(path: str) -> str:
    """Read."""
    return path


class Extended(BaseModel):
    model_config = ConfigDict(extra='allow')
    path: str


@tool(args_schema=Extended)
def extended(path: str, **more: Any) -> str:
    """Read."""
    return path


@tool
def variadic(*args: str, **kwargs: str) -> str:
    """Read."""
    return ''


@pytest.mark.parametrize(
    ('used', 'given', 'shown'),
    [
        pytest.param(read, {'path': 'a', 'depth': '2'}, {'path': 'a', 'depth': 2}, id='validated'),
        pytest.param(read, {'path': 'a'}, {'path': 'a', 'depth': 1}, id='with defaults'),
        pytest.param(aliased, {'file': 'a'}, {'path': 'a'}, id='an alias is shown as its parameter'),
        pytest.param(aliased, 'a', {'path': 'a'}, id='a text is the only parameter'),
        pytest.param(extended, {'path': 'a', 'mode': 'rw'}, {'path': 'a', 'mode': 'rw'}, id='more where allowed'),
        pytest.param(variadic, {}, {}, id='variadic, not given'),
        pytest.param(
            variadic, {'args': ['a'], 'kwargs': {'b': 'c'}}, {'args': ['a'], 'kwargs': {'b': 'c'}}, id='variadic'
        ),
        pytest.param(mcp_tool(), {'path': 'a', 'more': 1}, {'path': 'a', 'more': 1}, id='a schema in JSON'),
        pytest.param(Untyped(), {'path': 'a', 'depth': 2}, {'path': 'a', 'depth': 2}, id='no schema'),
        pytest.param(Untyped(), 'a', {'path': 'a'}, id='no schema, a text'),
        pytest.param(Open(), {'any': 'thing'}, {'any': 'thing'}, id='a tool that takes anything'),
    ],
)
def test_arguments_are_shown_as_the_tool_gets_them(used, given, shown):
    assert read_arguments(used, given).read.shown == shown


def test_arguments_are_kept_as_they_were_given():
    assert read_arguments(read, {'path': 'a', 'depth': '2'}).given == {'path': 'a', 'depth': '2'}


def test_injected_parameters_are_set_apart():
    @tool
    def read(path: str, user: Annotated[str, InjectedToolArg], depth: int = 1) -> str:
        """Read."""
        return path

    read_in = read_arguments(read, {'path': 'a', 'user': 'kim'})

    assert read_in.read.shown == {'path': 'a', 'depth': 1}
    assert read_in.given == {'path': 'a'}
    assert read_in.injected == {'user': 'kim'}


@pytest.mark.skipif(sys.version_info >= (3, 14), reason='pydantic 1 does not run there')
def test_a_schema_of_pydantic_1_passes_arguments_as_they_are():
    from pydantic.v1 import BaseModel as BaseModelV1

    class Arguments(BaseModelV1):
        path: str

    old = StructuredTool(name='read', description='Read.', args_schema=Arguments, func=lambda path: path)

    assert read_arguments(old, {'path': 'a'}).read.shown == {'path': 'a'}


class Picky(BaseModel):
    path: str

    @field_validator('path')
    @classmethod
    def check(cls, path: str) -> str:
        return {'a': path}[path]


@tool(args_schema=Picky)
def picky(path: str) -> str:
    """Read."""
    return path


class Uncopied:
    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError('secret')


circular: list[Any] = []
circular.append(circular)


@pytest.mark.parametrize(
    ('used', 'given', 'problem'),
    [
        pytest.param(Untyped(), {'path': 'a', 'other': 1}, r': other \(unknown\)', id='unknown'),
        pytest.param(Untyped(), {}, ': path: Field required', id='missing'),
        pytest.param(Untyped(), {'path': ['a']}, ': path: Input should be a valid string', id='another type'),
        pytest.param(mcp_tool(), {'other': 1}, r': path \(missing\)', id='missing, of JSON'),
        pytest.param(mcp_tool(), 'a', 'not a mapping of names to values', id='text, of JSON'),
        pytest.param(
            Tool(name='t', description='t', func=str), {'a': 1, 'b': 2}, 'one argument, not 2', id='two of one'
        ),
        pytest.param(picky, {'path': 'b'}, r'could not be validated \(KeyError\)', id='validator fails'),
        pytest.param(Open(), {'a': Uncopied()}, r'cannot be copied \(RuntimeError\)', id='no copy'),
        pytest.param(Open(), {'a': object()}, 'a value cannot be represented in JSON', id='object'),
        pytest.param(Open(), {'a': b'\xff'}, 'a value cannot be represented in JSON', id='bytes'),
        pytest.param(Open(), {'a': circular}, 'a value is nested too deeply, or contains itself', id='circular'),
        pytest.param(Open(), {'a': float('inf')}, 'too long or not finite', id='infinite'),
    ],
)
def test_arguments_that_do_not_fit_the_schema_are_refused(used, given, problem):
    with pytest.raises(ValueError, match=problem):
        read_arguments(used, given)


def test_definition_digest_depends_on_the_description():
    def digest(tool: BaseTool) -> str | None:
        return definition_digest(tool, schema_of(tool))

    assert digest(Untyped()) == digest(Untyped())
    assert digest(Untyped(description='Other.')) != digest(Untyped())
    assert digest(mcp_tool()) is not None
    assert digest(Untyped(description='\ud800')) is None


def test_a_definition_that_cannot_be_written_down_has_no_digest():
    class Arguments(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        value: Uncopied

    @tool(args_schema=Arguments)
    def read(value: Any) -> str:
        """Read."""
        return ''

    assert schema_of(read) is None
    assert definition_digest(read, None) is None
    assert definition_digest(read, {'default': float('nan')}) is None


def test_values_hidden_by_serialisation_are_read_and_marked():
    class Spec(BaseModel):
        host: str
        command: str = Field(default='true', exclude=True)

    @tool
    def act(spec: Spec, password: SecretStr) -> str:
        """Act."""
        return 'ok'

    first = read_arguments(act, {'spec': {'host': 'h', 'command': 'EVIL'}, 'password': 'hunter2'})
    second = read_arguments(act, {'spec': {'host': 'h', 'command': 'EVIL'}, 'password': 'other'})

    assert first.read.shown == {'spec': {'host': 'h', 'command': 'EVIL'}, 'password': '[hidden]'}
    assert first.read.is_altered
    assert first.read.bound != second.read.bound


def test_an_iterable_is_given_to_the_tool_whole():
    @tool
    def act(names: Iterable[str]) -> str:
        """Act."""
        return ' '.join(names)

    arguments = read_arguments(act, {'names': ['a', 'b']})

    assert arguments.read.shown == {'names': ['a', 'b']}
    assert act.invoke(arguments.given) == 'a b'


def test_only_json_among_injected_values_is_judged_where_a_model_may_have_sent_it():
    @tool
    def act(path: str, user: Annotated[Any, InjectedToolArg], state: Annotated[Any, InjectedToolArg]) -> str:
        """Act."""
        return path

    state = {'messages': [object()], 'n': 1}
    given = {'path': 'a', 'user': {'name': ['root', None]}, 'state': state}

    assert read_arguments(act, given).read.shown == {'path': 'a'}
    judged = read_arguments(act, given, judges_injected=True)
    assert judged.read.shown == {'path': 'a', 'user': {'name': ['root', None]}}
    assert judged.injected['state'] is state
