import pytest

from .parts import OPEN, blocked, decision, judge

NOT_UNDERSTOOD = [
    ('ls|#c\nls', 'a `#` that may not begin a comment'),
    ('(#c\nls)', 'a `#` that may not begin a comment'),
    ('\\ ', 'text between two words'),
    ('case a in +(a)) ls;; esac', 'a pattern of `case`'),
    ('ls a $', '$ in a command'),
    ('&> |in=~', 'a program that may be an assignment'),
    ('a[0] =1', 'an assignment'),
    ('1<<E', 'a redirection'),
    ('cat <\nls', 'a redirection'),
    ('[[ a =~ (b) ]]', ' in a test'),
    ('a=#b', 'a word that begins with `#`'),
    ('echo "a\\\nb"', 'a string in double quotes'),
    ('echo "$a\\\n"', 'a string in double quotes'),
    ('echo a$"', 'a string in double quotes'),
    ('echo a$', 'a word with special characters'),
    ('ls a\\\n#; ls', 'a `#` that may not begin a comment'),
    ('if\\\nls; then ls; fi', 'two words without a blank between them'),
    ('!\\\nls', 'two words without a blank between them'),
    ('[ a || ls ]', '`||` in `[`'),
    ('[ a && ls -eq 1 ]', '`&&` in `[`'),
    ('[ a > b ]', '`>` in `[`'),
    ('[ (a) ]', '`(` in `[`'),
]


@pytest.mark.parametrize(('command', 'problem'), NOT_UNDERSTOOD, ids=ascii)
def test_unparsed_command_asks_and_is_named(command, problem):
    explanation = judge(default=OPEN).explain(command)

    assert explanation.decision == 'ask'
    assert any(problem in part.reason for part in explanation.parts), [part.reason for part in explanation.parts]


def test_a_script_in_a_script_is_followed_only_so_deep():
    explanation = judge(*blocked('rm'), default=OPEN).explain('eval ' * 8 + 'rm a')
    deeper = judge(*blocked('rm'), default=OPEN).explain('eval ' * 9 + 'rm a')

    assert explanation.decision == 'block'
    assert deeper.decision == 'ask'
    assert any(part.reason == 'not understood: scripts are nested too deeply' for part in deeper.parts)


def test_a_wrapper_of_assignments_alone_is_judged_by_itself():
    assert decision('sudo A=1', default=OPEN) == 'ask'


@pytest.mark.parametrize(
    'command',
    ['[abc]', '[a-z]', '[-f x]', '[-f x ]', '[ -f x]', '[]', '[[a == b ]]', '[!a]', 'ls && [abc]', '! [abc]',
        'if [abc]; then ls; fi', '[ -f x\n]', '[ -f\nx ]', '[ -- = -o ]]'],
    ids=ascii,
)  # fmt: skip
def test_a_bracket_that_is_no_word_of_its_own_is_a_glob(command):
    """Attack: a file `a`, run by `[abc]`."""
    rules = [{'pattern': name, 'approval': False} for name in ('ls', 'test', '[', '[[')]

    assert decision(command, *rules) == decision(command, *rules, default=OPEN) == 'ask'


@pytest.mark.parametrize(
    'command',
    ['[ -f x ]', '[\t-f x\t]', '[ -f \\\n x ]', '[ "a\nb" = c ]', '[ ]', '[[ a == b\n&& c == d ]]',
        'if [ -f x ]; then ls; fi', 'if ! [ -f x ]; then ls; fi', '[[ a > b || ( c < d && ! -f e ) ]]'], ids=ascii
)  # fmt: skip
def test_a_bracket_between_blanks_is_the_test_program(command):
    assert decision(command, {'pattern': 'ls', 'approval': False}) == 'allow'


@pytest.mark.parametrize('command', ['ls 2>&-', 'ls <&-', 'ls >&- a'])
def test_a_descriptor_that_is_closed_is_no_file(command):
    assert decision(command, {'pattern': 'ls', 'approval': False}) == 'allow'
