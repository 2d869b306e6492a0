"""Read the options of a program from its own help, and compare an entry of the data with them."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache

from tool_approval.tools.shell.entries import entries

BUILTINS = frozenset({
    '[', '[[', 'builtin', 'cd', 'command', 'coproc', 'eval', 'exec', 'exit', 'help', 'jobs', 'kill', 'popd', 'printf',
    'pushd', 'read', 'return', 'set', 'shift', 'source', 'test', 'trap', 'type',
})  # fmt: skip
"""What bash itself runs."""
OWN_HELP = {
    'find': ['find', '-help'],
    'jq': ['jq', '-h'],
    'python': [sys.executable, '--help'],
    'rg': ['rg', '--help'],
}
"""How to ask programs that do not explain themselves with `--help`."""
MODULES = frozenset({'mypy', 'pip', 'pytest', 'ruff'})
"""Programs of the environment that the tests run in."""
_SPECIFICATION = re.compile(r'^ {0,10}(?P<options>-.*?)(?:\t| {2,}|: |$)')
_OPTION = re.compile(r'(?P<name>--?(?:\[no-\])?[\w?@#][\w?.-]*)(?P<value>.*)')


def command_of(name):
    """The command that prints the help of a program or sub-command; `None` where it is not installed."""
    program, *sub = name.split()
    if program == 'git':
        return ['git', *sub, '-h'] if sub else ['git', '--help']
    if program in BUILTINS:
        return ['bash', '-c', 'help -m -- "$1" 2>/dev/null || help "$1"', 'bash', program]
    if name in OWN_HELP:
        return OWN_HELP[name] if shutil.which(OWN_HELP[name][0]) else None
    if program in MODULES:
        return [sys.executable, '-m', program, *sub, '--help']
    return [program, *sub, '--help'] if shutil.which(program) else None


@cache
def help_of(name):
    """The help of a program, or `None`."""
    command = command_of(name)
    if command is None:
        return None
    # `top` writes into the home.
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, 'HOME': home, 'XDG_CONFIG_HOME': home, 'LC_ALL': 'C', 'COLUMNS': '120'}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=home, env=env
        )
    return re.sub('.\b', '', done.stdout + done.stderr)


def read_options(text):
    """`{option: {...}}`: whether each option of a help takes a value: 'none', 'optional' or 'required', or several."""
    found = {}
    for line in text.splitlines():
        specification = _SPECIFICATION.match(line)
        if specification is None:
            continue
        # A line of `find -help` lists several options.
        for group in re.split(r'(?<![,|])(?<! or) (?=-[a-z])', specification['options']):
            _read_group(group, found)
    return found


def _read_group(group, found):
    parts = re.split(r', ?(?=-)| (?:or|\|) (?=-)|\|(?=-)', group)
    items = [each for each in (_OPTION.fullmatch(part.strip()) for part in parts) if each is not None]
    values = {_takes(each['value']) for each in items}
    takes = next(each for each in ('required', 'optional', 'none') if each in values or each == 'none')
    for each in items:
        # A letter before `--color[=WHEN]` often takes no value.
        own = {takes, 'none'} if takes == 'optional' and not each['name'].startswith('--') else {takes}
        positive = each['name'].replace('[no-]', '')
        found.setdefault(positive, set()).update(own)
        if positive != each['name']:
            found.setdefault(each['name'].replace('[no-]', 'no-'), set()).add('none')


def _takes(rest):
    if rest.lstrip().startswith('['):
        return 'optional'
    return 'required' if re.fullmatch(r' ?[=<{].*|(?: [A-Z][A-Z0-9_:./|-]*)+| [a-z]+', rest) else 'none'


_PLACES = {'next': 'required', 'attached': 'optional', 'either': 'optional'}


def differences(name):
    """Compare the options of an entry with the help of its program; `None` where it is not installed.

    Returns:
        What the entry says otherwise than the help, and how many options the help confirms.
    """
    text = help_of(name)
    if text is None:
        return None
    real, wrong, confirmed = read_options(text), [], 0
    for option, role in entries().find(name).options.items():
        expected = 'none' if role.kind is None else _PLACES[role.place]
        confirmed += expected in real.get(option, ())
        # An option whose optional value is refused is a flag.
        if option in real and real[option].isdisjoint({expected, *(['optional'] if expected == 'none' else [])}):
            wrong.append(f'{option}: {expected} here, {" or ".join(sorted(real[option]))} in its help')
    return wrong, confirmed
