"""What a word may become: other words, options among them."""

import pytest

from tests.tables import table

from .parts import decision, unasked

RULES = unasked('git log', 'find', 'sort', 'echo', 'cat', 'pytest', 'date')


@table(
    'command',
    [
        "a=' --output=x'; git log ..$a",
        "x=' -delete'; find ./$x",
        "x=' -o out'; sort f$x",
        "sort f$(echo ' -o x')",
        "sort f`echo ' -o x'`",
        'sort f${x}',
        'sort f$1',
        'sort "a"$x',
        "sort 'a'$x",
        "sort $'a'$x",
        'sort a*$x',
        'sort {a,b}$x',
        'sort ~$x',
        'sort ~/$x',
        'find . -exec cat a$x {} \\;',
        'for f in a b; do sort ./$f; done',
        'date +$x',
    ],
)
def test_an_expansion_that_is_not_quoted_may_be_an_option_wherever_it_stands(command):
    """Attack: bash splits the value, and what stands behind a blank in it is a word of its own."""
    assert decision(command, *RULES) == 'ask'


@pytest.mark.parametrize('braces', ['{"$x",a}', '{a,"$x"}', '{"$x",a}b', '\'\'{"$x",a}', '{a,"${x}",b}'])
def test_braces_may_list_an_expansion_in_quotes(braces):
    """Attack: each part of the list is a word of its own, and may be an option."""
    assert decision(f'x=-oy; sort {braces}', *RULES) == 'ask'


@pytest.mark.parametrize('command', ['sort a{b,"$x"}', 'sort "$x"a', 'sort ./{"$x",a}', 'cat {"$x",a}'])
def test_braces_behind_a_text_begin_alike(command):
    expected = 'ask' if command == 'sort "$x"a' else 'allow'

    assert decision(command, *RULES) == expected


@pytest.mark.parametrize('all_arguments', ['"$@"', '"${@}"', 'a"$@"', '"a$@"', '"a${@}b"', '$@', '$*', '$"a$@"'])
def test_all_arguments_are_several_words_even_in_quotes(all_arguments):
    assert decision(f"bash -c 'sort f{all_arguments}' _ b -o x", *RULES) == 'ask'


@pytest.mark.parametrize(
    'command',
    ['sort "f$x"', 'sort f"$x"', 'sort "f$*"', 'sort f*', 'sort f{a,b}', 'sort ~/f', 'git log "HEAD~$n"',
        'git log HEAD~$((1 + 1))',
     'find "./$d" -name a', 'git log HEAD~$#', 'git log HEAD~${#a}', 'date "+$x"', 'for f in *; do cat "$f"; done',
     'cat $x'],
)  # fmt: skip
def test_what_stays_one_word_or_begins_alike_is_no_option(command):
    assert decision(command, *RULES) == 'allow'


@pytest.mark.parametrize(
    'command',
    ['echo a"é', 'echo "é', 'echo "é$(', 'echo "$x é', "echo 'é", "echo $'é", 'echo `é', 'echo ${é', 'cat <<é'],
)
def test_a_text_that_never_ends_is_asked_about(command):
    assert decision(command, *RULES) == 'ask'
