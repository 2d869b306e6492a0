"""What remembering covers: no two choices look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.core.request import RememberOption
from tool_approval.display import display, offered_keys, remember_choices
from tool_approval.display.questions import session_choice

from tool_approval import ApprovalRequest


def offering(*labels_and_payloads: tuple[str, dict], **fields) -> ApprovalRequest:
    options = [
        RememberOption(kind=f'k{number}', label=label, payload=payload)
        for number, (label, payload) in enumerate(labels_and_payloads, 1)
    ]
    return ApprovalRequest(
        **{'tool_name': 'write', 'args': {'path': 'a'}, 'remember_options': tuple(options), **fields}
    )


@pytest.mark.parametrize('other', ['notes/', ' notes/', 'Notes/'])
def test_options_with_the_same_label_show_kind_and_payload(other: str) -> None:
    choices = remember_choices(offering(('notes/', {'path': 'notes'}), (other, {'path': '/'}), ('x', {})))

    assert choices[1] == ('k1', "notes/ (k1: path: 'notes')")
    assert choices[2][1].endswith("(k2: path: '/')")
    assert choices[3] == ('k3', 'x')


def test_option_labelled_like_the_exact_call_shows_its_payload() -> None:
    choices = remember_choices(offering(('exactly this call', {'path': '/'})))

    assert choices == [('exact', 'exactly this call'), ('k1', "exactly this call (k1: path: '/')")]


def test_payloads_that_distinguish_options_are_escaped() -> None:
    choices = remember_choices(offering(('x', {'a': '\u200b', 'b c': 1}), ('x', {})))

    assert choices[1][1] == "x (k1: a: '\\u200b', 'b c': 1)"


class Faulty:
    def __repr__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None


@pytest.mark.parametrize('payload', [{'path': 'x' * 400}, {'path': Faulty()}])
def test_indistinguishable_options_are_not_offered(payload: dict) -> None:
    request = offering(('notes/', payload), ('notes/', payload))

    assert 's' not in offered_keys(request)
    assert 's' in offered_keys(offering(('notes/', payload), ('docs/', payload)))


def test_an_option_that_is_labelled_as_another_with_its_payload_is_not_offered() -> None:
    request = offering(('notes/', {'a': 1}), ('notes/', {'a': 2}), ('notes/ (k1: a: 1)', {'a': 3}))

    assert 's' not in offered_keys(request)


def test_arguments_that_cannot_be_compared_cannot_be_remembered() -> None:
    request = offering(args={'x': Faulty()}, payload={'x': Faulty()}, description='d')

    assert 's' not in offered_keys(request)
    assert 's' not in offered_keys(request, is_whole=True)


def test_a_name_cannot_pass_for_a_name_with_a_value() -> None:
    told = [
        remember_choices(offering(args={**payload, 'z': 0}, payload=payload))[0][1]
        for payload in ({'a': 1, 'b': 2}, {'a: 1, b': 2})
    ]

    assert told == ['every write with a: 1, b: 2', "every write with 'a: 1, b': 2"]


@given(
    labels=st.lists(st.sampled_from(['a', 'A', ' a', 'exactly this call', 'a (k1: x: 1)']), max_size=4),
    values=st.lists(st.integers(0, 1), min_size=4, max_size=4),
)
def test_offered_options_always_differ(labels: list[str], values: list[int]) -> None:
    request = offering(*((label, {'x': value}) for label, value in zip(labels, values, strict=False)))

    told = [' '.join(text.split()).casefold() for _, text in remember_choices(request)]

    assert len(set(told)) == len(told) or 's' not in offered_keys(request)


def test_hidden_arguments_are_approved_once_only() -> None:
    request = offering(metadata={'can_remember_always': True})
    hiding = request.model_copy(update={'hides_arguments': True})

    assert {'s', 'a'} <= set(offered_keys(request, is_whole=True))
    assert not {'s', 'a'} & set(offered_keys(hiding, is_whole=True))
    assert not display(hiding).is_whole
    assert (
        display(hiding).lines[-1].text == '(the tool hides or alters some arguments: the approval cannot be remembered)'
    )


def briefly(*briefs: str, **fields) -> ApprovalRequest:
    options = [
        RememberOption(kind=f'k{number}', label=f'label {number}', payload={'n': number}, brief=brief)
        for number, brief in enumerate(briefs, 1)
    ]
    return offering(**fields).model_copy(update={'remember_options': tuple(options)})


def test_one_key_offers_the_widest_option_that_its_tool_expects() -> None:
    assert session_choice(briefly('git fetch', 'git', '')) == ('k2', 'git')
    assert session_choice(briefly('', '')) == ('exact', 'the same call')


@pytest.mark.parametrize(
    'brief',
    [
        'a\nb',
        'a   n deny',
        ' a',
        'gr\u00f6\u00dfe',
        'a\x1b[2K',
        'x' * 61,
        'Exactly  this call',
        'exactly this call',
        'The same call',
        'label 2',
    ],
)
def test_a_brief_that_may_pass_for_other_words_is_none(brief: str) -> None:
    assert session_choice(briefly(brief, '')) == ('exact', 'the same call')


def test_two_options_of_one_brief_have_none() -> None:
    assert session_choice(briefly('git', 'Git')) == ('exact', 'the same call')


def test_an_option_with_the_payload_of_the_call_only_names_it() -> None:
    option = RememberOption(kind='file', label='every edit of a', payload={'path': 'a'}, brief='edits of a')
    request = offering(args={'path': 'a', 'text': 'b'}, payload={'path': 'a'})
    request = request.model_copy(update={'remember_options': (option,)})

    assert remember_choices(request) == [('exact', 'every edit of a')]
    assert session_choice(request) == ('exact', 'edits of a')
    unnamed = request.model_copy(update={'remember_options': (option.model_copy(update={'brief': ''}),)})
    assert session_choice(unnamed) == ('exact', '')
    assert 'r' not in offered_keys(request)
    assert 'r' in offered_keys(briefly(''))
