"""Scripts of sed and awk."""

import time

import pytest

from tests.tables import table

from .parts import decision, judge, unasked


@table(
    'script',
    ['p', '1,5p', '$p', '/a/,/b/p', '/a/{p;q}', '/a/{ /b/p ; }', '1!d', 's/a/b/g;p', 's|a|b|p', 'y/ab/cd/', '0~3p',
        '1,+2p', '',
     ';;p;', '/a/,$p', '{p}', '/a/ { s/x/y/p };q',
     ':a;N;$!ba;s/\\n/ /g', 's_a_b_', 's!a!b!', '\\|a|p', '\\,/a,d', 't;b end;:end'],
)  # fmt: skip
def test_a_script_that_selects_and_substitutes_is_allowed(script):
    assert decision(f"sed -n '{script}' f", *unasked('sed -n')) == 'allow'


@table(
    'script',
    ['w x', '/a/w x', '/a/{w x\n}', '{w x', 'p;w x', 'p}w x', '};w x', '{};e', 's/a/b/w x', 's/a/b/e', 's/a/b/;e',
        '1e x', 'r x', 'R x',
     'W x', 'p\nw x', 's/[/]w x/p/', '\\,a,w x', 'a x', '/a/{p;w x\n}', 'p w x', '{p w x}', 'y/a/b/w x', '#n', ':',
     ':a w', ':A', 'ba w x', 'b;w x', '\\|a|w x', '\\|a|b|w x', 's_a_b_w x', '1,2!e', '!w x'],
)  # fmt: skip
def test_a_script_with_anything_else_in_it_is_asked_about(script):
    assert decision(f"sed -n '{script}' f", *unasked('sed -n')) == 'ask'


@pytest.mark.parametrize(
    'script', [' ' * 1_900 + 'X', ' ' * 7_900 + 'X', 'p;' * 900 + 'X', '1' * 1_900 + 'X', '{' * 1_900 + 'X']
)
def test_a_script_that_leads_nowhere_takes_no_time(script):
    """Attack: as one expression, 3,000 blanks took longer than a minute."""
    judging = judge(*unasked('sed -n'))
    begin = time.thread_time()

    explanation = judging.explain(f"sed -n '{script}' f")

    assert explanation.decision == 'ask'
    assert time.thread_time() - begin < 1


@pytest.mark.parametrize(
    'command',
    ["awk '$3 > 100 {print $1}' f", "awk 'NR>=5 && NR<=10' f", "awk '/a|b/' f", "awk '$1==1 || $2==2 {print}' f",
        "awk -F'|' '{print $2}' f",
     "awk -F '|' '{print $2}' f", "awk -v a='>' '{print a}' f", 'awk -v a="$x" \'{print a}\' f',
     "awk '{if ($1 > 3) print}' f",
     "awk -- '$1>2' f", "awk --posix '$1>2' f", "awk '{print}' 'a|b' \"$f\"f"],
)  # fmt: skip
def test_a_program_that_compares_before_it_prints_is_allowed(command):
    assert decision(command.replace('"$f"f', 'f'), *unasked('awk')) == 'allow'


@table(
    'command',
    ["awk '$3 > 1 {print > \"x\"}' f", "awk '{print | \"x\"}' f", "awk '{print || 1 | \"sh\"}' f",
        "awk '{printf(\"a\") >> \"x\"}' f",
     "awk 'BEGIN{\"x\" | getline}' f", "awk 'BEGIN{system(\"x\")}'", 'awk "{print $x}" f', "awk '{print '$x'}' f",
     'awk "$p" f',
     'awk -F, $p f', 'awk -v a=$x 1 f', 'awk -F $x 1 f', "awk -Fv 'BEGIN{system(1)}' f", 'awk -Fv "1$x" f',
     'awk -- "1$x" f',
     "awk '@load \"x\"' f", 'awk -W exec x', "awk -b -e '{print' -e '> \"x\"}' f", "awk --source 'BEGIN{system(1)}' f",
     'awk --field , "1$x" f',
     "awk 'sys\\\ntem(1)' f"],
)  # fmt: skip
def test_a_program_that_may_write_run_or_be_another_is_asked_about(command):
    assert decision(command, *unasked('awk')) == 'ask'


@pytest.mark.parametrize('command', ['awk', 'awk -F,', 'awk --', 'awk -v a=1'])
def test_awk_without_a_program_prints_how_it_is_used(command):
    assert decision(command, *unasked('awk')) == 'allow'


@pytest.mark.parametrize(
    ('command', 'expected'),
    [("sed -n '1,10p' -- f", 'allow'), ('sed -- 1p -f', 'allow'), ("sed -n -- 'w x' f", 'ask'),
        ('sed -e p -- f', 'allow'), ('sed -- "$x" f', 'ask')],
)  # fmt: skip
def test_behind_two_dashes_sed_takes_no_options(command, expected):
    assert decision(command, *unasked('sed')) == expected
