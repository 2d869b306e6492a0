"""What stands above the content cannot be forged by it."""

import pytest
from tool_approval.core.presentation import PresentationType
from tool_approval.display import display, facts, warnings_of
from tool_approval.display.fact_texts import is_usual, summary

from tool_approval import ApprovalPresentation, ApprovalRequest


def told(path: str, **metadata) -> str:
    presentation = ApprovalPresentation(type='file_content', content='x', metadata={'path': path, **metadata})
    return dict(facts(ApprovalRequest(tool_name='t', description='t()', presentation=presentation)))['file']


@pytest.mark.parametrize(
    ('path', 'is_new', 'shown'),
    [
        ('notes', True, 'notes (new)'),
        ('notes (new)', False, '"notes (new)"'),
        ('notes (new)', True, '"notes (new)" (new)'),
        ('"notes" (new)', False, '"<U+0022>notes<U+0022> (new)"'),
        ('"notes"', False, '"<U+0022>notes<U+0022>"'),
        ('notes(new)', False, '"notes(new)"'),
        ('notes (old)', False, '"notes (old)"'),
        ('no"tes', False, '"no<U+0022>tes"'),
        ('notes-old', False, 'notes-old'),
    ],
)
def test_an_old_file_cannot_pass_for_a_new_one(path: str, is_new: bool, shown: str) -> None:
    assert told(path, is_new=is_new) == shown


def of_metadata(run_id: str | None = 'r', **metadata: object) -> dict[str, str]:
    return dict(facts(ApprovalRequest(tool_name='t', run_id=run_id, metadata=metadata)))


def test_capabilities_cannot_pass_for_fewer_or_for_words_of_ours() -> None:
    lacks = ['net', 'a, b', 'fs.write:/srv', 'x"', '\x1b[2K', 'net']

    shown = of_metadata(missing_capabilities=lacks)['grants']

    assert shown == 'net, "a, b", fs.write:/srv, "x<U+0022>", "<U+001B>[2K", for calls of this tool until the run ends'
    assert of_metadata(None, missing_capabilities=['net'])['grants'] == 'net, for this call'
    assert 'grants' not in of_metadata(missing_capabilities=[])


def test_a_worker_is_shown_where_it_is_not_the_agent_that_asks() -> None:
    assert of_metadata(worker='crawler', caller='boss')['worker'] == 'crawler'
    assert of_metadata(worker='a\nb')['worker'] == 'a<U+000A>b'
    assert 'worker' not in of_metadata(worker='boss', caller='boss')
    assert 'worker' not in of_metadata(worker=1)


@pytest.mark.parametrize('value', [10**4000, [10**4000] * 3, {'a': 10**4000, 'b': 1}, [1, (10**300, 2)]])
def test_a_description_that_repeats_a_long_integer_is_not_shown(value: object) -> None:
    request = ApprovalRequest(tool_name='t', args={'x': value, 'y': 1})

    assert facts(request) == []
    assert facts(request.model_copy(update={'description': f'{request.description} '})) != []


def access(lines: object, *, whole: bool = False) -> list[str]:
    presentation = ApprovalPresentation(type='text', content='x', metadata={'extra_access': lines})
    request = ApprovalRequest(tool_name='t', presentation=presentation)
    return [text for label, text in facts(request, whole=whole) if label == 'extra access']


LINES = ['network (every host, with all that the command may read)', 'writes to .git']


def test_extra_access_is_listed_line_by_line_and_escaped() -> None:
    assert access(['writes to .git', 'network\x1b[2K']) == ['writes to .git', 'network<U+001B>[2K']
    assert access('network') == ['network']
    assert access([]) == access(None) == []


@pytest.mark.parametrize(
    ('brief', 'shown'),
    [
        (['network (every host)', 'writes to .git'], ['network (every host)', 'writes to .git']),
        (['network (every host)'], ['network (every host)', 'writes to .git']),
        (['writes to a', 'reads .git'], LINES),
        (['', None, 'network'], LINES),
        ('network', LINES),
    ],
)
def test_extra_access_in_brief_says_nothing_else(brief: object, shown: list[str]) -> None:
    metadata = {'extra_access': LINES, 'brief_access': brief}
    presentation = ApprovalPresentation(type='text', content='x', metadata=metadata)

    told = facts(ApprovalRequest(tool_name='t', presentation=presentation), brief=True)

    assert [text for label, text in told if label == 'extra access'] == shown


@pytest.mark.parametrize(
    ('type_', 'description', 'shown'),
    [
        ('command', 'Run: ls', 'ls'),
        ('command', 'List files', 'List files'),
        ('text', 'Run: ls', 'Run: ls'),
        ('text', "act(a='b')", "a='b'"),
        ('text', "act(a='b...", "act(a='b..."),
    ],
)
def test_a_summary_says_nothing_twice(type_: PresentationType, description: str, shown: str) -> None:
    presentation = ApprovalPresentation(type=type_, content='ls')

    assert summary(ApprovalRequest(tool_name='act', description=description, presentation=presentation)) == shown


def test_summary_from_the_configuration_names_its_source() -> None:
    request = ApprovalRequest(tool_name='act', description='act(all)', described_by='approvals.yaml')

    assert summary(request) == 'described by approvals.yaml as: act(all)'


def test_extra_access_is_never_hidden_by_its_shape() -> None:
    assert access([7, ' ', {}]) == ['a value that cannot be shown'] * 3
    assert access({'network': True}) == ['a value that cannot be shown']


@pytest.mark.parametrize('lines', [['x'] * 11, ['x' * 601]])
def test_extra_access_that_is_cut_cannot_be_remembered(lines: list[str]) -> None:
    presentation = ApprovalPresentation(type='text', content='x', metadata={'extra_access': lines})
    request = ApprovalRequest(tool_name='t', presentation=presentation)

    assert not display(request).is_whole
    assert len(''.join(access(lines))) < len(''.join(lines)) + 40
    assert access(lines, whole=True) == lines


def test_look_alikes_in_extra_access_are_warned_of() -> None:
    presentation = ApprovalPresentation(type='text', content='x', metadata={'extra_access': ['n\u0435twork']})

    assert 'look-alikes' in ' '.join(warnings_of(ApprovalRequest(tool_name='t', presentation=presentation)))


@pytest.mark.parametrize(
    ('fields', 'labels'),
    [({}, ['why']), ({'described_by': 'approvals.yaml'}, ['about', 'why'])],
)
def test_a_usual_description_is_not_repeated(fields: dict[str, str], labels: list[str]) -> None:
    presentation = ApprovalPresentation(type='text', content='x', metadata={'is_usual': True})
    request = ApprovalRequest(tool_name='t', description='d', reason='r', presentation=presentation, **fields)

    assert [label for label, _ in facts(request)] == labels
    assert is_usual(request) == (labels == ['why'])


def test_the_person_the_agent_works_for_is_shown_and_escaped() -> None:
    assert of_metadata(requester='ada')['for'] == 'ada'
    assert of_metadata(requester='\x1b[2K')['for'] == '<U+001B>[2K'
    assert 'for' not in of_metadata()
