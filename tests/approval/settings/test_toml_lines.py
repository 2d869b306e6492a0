"""TOML in; the line of each key out, or none."""

import time
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.settings import parse_settings
from tool_approval.settings.toml_lines import MAX_CHARS, parse_toml

from tests.tables import table
from tool_approval import ApprovalConfigError

FILE = """\
# Who may do what.
mode = "strict"
default = 'required'

[tools.read_file]
approval = "none"

[tools]
write_file = { approval = "required", description = \"\"\"
Writes a "file",
whole.\"\"\" }
"delete_*".approval = "blocked"

[sandbox.paths.notes]
root = './notes'
suffixes = [
  ".txt", # the usual
  ".md",
]

[[shell.rules]]
pattern = "git status"  # comment = 1
approval = false
[[shell.rules]]
pattern = "rm"
allowed = false
[shell.default]
approval = true

[auto_grant]
vm = ["net", '''x''']
"""


def mistake_in(text):
    with pytest.raises(ApprovalConfigError) as mistake:
        parse_settings(text, source='approvals.toml', format='toml')
    assert mistake.value.source == 'approvals.toml'
    return mistake.value


@table('newline', ['\n', '\r\n'])
@table(
    ('path', 'line'),
    [
        (('mode',), 2),
        (('default',), 3),
        (('tools',), 5),
        (('tools', 'read_file'), 5),
        (('tools', 'read_file', 'approval'), 6),
        (('tools', 'write_file'), 9),
        (('tools', 'write_file', 'description'), 9),
        (('tools', 'delete_*', 'approval'), 12),
        (('sandbox', 'paths', 'notes', 'root'), 15),
        (('sandbox', 'paths', 'notes', 'suffixes', 0), 17),
        (('sandbox', 'paths', 'notes', 'suffixes', 1), 18),
        (('sandbox', 'paths', 'notes', 'mode'), 14),
        (('shell', 'rules'), 21),
        (('shell', 'rules', 0, 'approval'), 23),
        (('shell', 'rules', 1), 24),
        (('shell', 'rules', 1, 'allowed'), 26),
        (('shell', 'default', 'approval'), 28),
        (('auto_grant', 'vm', 1), 31),
        (('nothing',), None),
        ((), None),
    ],
)
def test_each_key_has_its_line(path, line, newline):
    _, line_of = parse_toml(FILE.replace('\n', newline), source=None)

    assert line_of(path) == line


@table(
    ('old', 'new', 'key', 'line', 'problem'),
    [
        ('mode = "strict"', 'mod = "strict"', 'mod', 2, 'did you mean `mode`?'),
        ('mode = "strict"', 'mode = "approve_all"', 'mode', 2, 'a file may not approve everything'),
        ('approval = "none"', 'aproval = "none"', 'tools.read_file.aproval', 6, 'did you mean `approval`?'),
        ('approval = "none"', 'approval = 1', 'tools.read_file.approval', 6, 'not a text'),
        ('approval = "none"', 'approval = 1979-05-27 07:32:00', 'tools.read_file.approval', 6, 'not a text'),
        ('".md",', '"md",', 'sandbox.paths.notes.suffixes.1', 18, "'md' is no suffix"),
        ("root = './notes'", '', 'sandbox.paths.notes.root', 14, 'this key is missing'),
        ('allowed = false', 'allowed = "no"', 'shell.rules.1.allowed', 26, 'neither true nor false'),
        ('allowed = false', 'allowed = false\nallowed = true', None, 27, 'not TOML: Cannot overwrite a value'),
        ('[auto_grant]', '[auto_grant', None, 30, 'not TOML: '),
        ('[auto_grant]', '[tools.read_file]', None, 30, 'not TOML: Cannot declare'),
        ("'''x'''", "'''x", None, None, 'not TOML: '),
        ("'''x'''", '9' * 5000, None, None, 'a number that is too large'),
        ('[auto_grant]', '\x00', None, 30, 'not TOML: '),
        ('[auto_grant]', '"\\q" = 1', None, 30, 'not TOML: '),
        ('[auto_grant]', '"\\q" = \x01', None, 30, 'not TOML: '),
        ('[auto_grant]', 'a = [', None, 31, 'not TOML: '),
        ('[auto_grant]', 'a = {', None, 30, 'not TOML: '),
    ],
)
def test_a_mistake_is_named_with_file_key_and_line(old, new, key, line, problem):
    mistake = mistake_in(FILE.replace(old, new, 1))

    assert (mistake.key, mistake.line) == (key, line)
    assert problem in mistake.problem


def test_no_line_is_told_where_the_scanner_found_other_keys(monkeypatch):
    monkeypatch.setattr('tool_approval.settings.toml_lines._lines', lambda text, source: {('mode',): 7})

    assert mistake_in('mod = "strict"').line is None


@pytest.mark.parametrize(
    'text',
    [
        '.'.join(['a'] * 30_000) + ' = 1',
        '[' + '.'.join(['a'] * 30_000) + ']',
        'x = 1\na = ' + '[' * 30_000,
        'a = ' + '[' * 30_000 + ']' * 30_000,
        'a = ' + '{a = ' * 15_000,
    ],
)
def test_deep_nesting_is_refused_at_once(text):
    start = time.perf_counter()

    mistake = mistake_in(text)

    assert mistake.problem == 'nested too deeply'
    assert mistake.line in (1, 2)
    assert time.perf_counter() - start < 5


def test_deep_nesting_that_the_scanner_does_not_see_is_refused_too(monkeypatch):
    monkeypatch.setattr('tool_approval.settings.toml_lines._lines', lambda text, source: {})

    assert 'too much nesting' in mistake_in('a = ' + '[' * 30_000).problem


def test_a_long_text_is_refused():
    assert mistake_in('#' * (MAX_CHARS + 1)).problem == f'longer than {MAX_CHARS} characters'


def quoted(text):
    return '"' + ''.join(f'\\U{ord(each):08x}' if not each.isalnum() else each for each in text) + '"'


NAMES = st.text(st.characters(exclude_categories=['Cs']), max_size=4)
VALUES = st.recursive(
    st.booleans() | st.integers(-99, 99) | NAMES,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=6,
)


def written(value):
    match value:
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case list():
            return '[\n' + ', # ]\n'.join(map(written, value)) + '\n]'
        case dict():
            return '{' + ', '.join(f'{quoted(key)} = {written(below)}' for key, below in value.items()) + '}'
        case _:
            return str(value)


def paths_of(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from paths_of(below, (*path, key))


@settings(max_examples=100, deadline=None)
@given(
    plain=st.dictionaries(NAMES, VALUES, max_size=4),
    tables=st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=3),
    lists=st.dictionaries(NAMES, st.lists(st.dictionaries(NAMES, VALUES, max_size=2), min_size=1, max_size=3)),
)
def test_every_key_of_every_document_has_a_line_that_it_stands_on(plain, tables, lists):
    taken = set(plain)
    tables = {key: section for key, section in tables.items() if key not in taken}
    lists = {key: items for key, items in lists.items() if key not in taken | set(tables)}
    lines = [f'{quoted(key)} = {written(value)}' for key, value in plain.items()]
    for key, section in tables.items():
        lines += [f'[{quoted(key)}]', *(f'{quoted(name)} = {written(value)}' for name, value in section.items())]
    for key, items in lists.items():
        for item in items:
            lines += [f'[[{quoted(key)}]] # "', *(f'{quoted(name)} = {written(value)}' for name, value in item.items())]
    text = '\n'.join(lines)

    document, line_of = parse_toml(text, source=None)

    assert document == tomllib.loads(text) == plain | tables | lists
    on_lines = text.split('\n')
    for path in paths_of(document):
        line = line_of(path)
        assert line is not None
        assert not isinstance(path[-1], str) or quoted(path[-1]) in on_lines[line - 1]


@settings(max_examples=300, deadline=None)
@given(st.text('a.=[]{}"\'\\#\n\t ,1', max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        document, line_of = parse_toml(text, source=None)
    except ApprovalConfigError:
        return

    assert {line_of(path) for path in paths_of(document)} <= set(range(1, text.count('\n') + 2))
