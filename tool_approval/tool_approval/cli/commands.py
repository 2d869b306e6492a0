"""List the commands with their options and help texts. A command's module has its name, and a function `run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Option: TypeAlias = tuple[Sequence[str], dict[str, Any]]
"""Arguments of `ArgumentParser.add_argument`: names and settings."""


@dataclass(frozen=True)
class CommandEntry:
    """One command, or one action of a command."""

    name: str
    summary: str
    options: Sequence[Option | list[Option]] = ()
    """Options in the order of the help text. A list holds options that exclude each other."""
    actions: Sequence[CommandEntry] = ()
    """Actions, one of which must be given."""
    ending: str | None = None
    """End of the help text: examples, and the command's own exit statuses."""


def _option(*names: str, **settings: Any) -> Option:
    return names, settings


def _flag(name: str, help: str) -> Option:
    return (name,), {'action': 'store_true', 'help': help}


SHORTEST_ID: Final = 8
"""Number of an id's 64 digits that are shown, and needed to name it. Chosen."""

_JSON: Final = _flag('--json', 'answer in JSON')
_FILE: Final = _option('file', nargs='?', metavar='FILE', help='the configuration; the one in the directory if not')
_ROOTS_BEGIN: Final = _option('--cwd', metavar='DIR', help='the directory that relative roots begin in')
_MODEL: Final = _option('--model', metavar='NAME', help='a Pydantic AI model, such as openai-chat:gpt-5.2')
_ID: Final = _option('id', metavar='ID', help=f'the first digits of its id, at least {SHORTEST_ID}')
_STORE: Final = _option('--store', metavar='FILE', help="the file; the one in the user's state directory if not")
_PLACE: Final = _option('--store', metavar='PLACE', help="a file, or postgresql://...; the user's own inbox if not")
_RUN: Final = _option('run', metavar='RUN', help='the id of the run')
_LOG: Final = _option('log', metavar='LOG', help='the log')

COMMANDS: Final = (
    CommandEntry(
        'run',
        'an agent on this directory, with approvals in the terminal',
        options=(
            _option('prompt', nargs='?', help='what to do; without it, you are asked for one turn after the other'),
            _MODEL,
            [
                _option('--mode', choices=('interactive', 'strict', 'approve_all'), help='in place of the settings'),
                _flag('--approve-all', 'approve what would be asked; a block still blocks'),
                _flag('--strict', 'deny what would be asked'),
            ],
            _option('--config', metavar='FILE', help='the settings; a file that is named here is trusted'),
            _flag('--no-os-sandbox', 'do not confine commands'),
            _flag('--inbox', 'ask in the inbox too: on the page of `serve`, and in Slack'),
            _option('--agent', metavar='MODULE:NAME', help='an agent of your own, imported from here first'),
            _option('--save', metavar='NAME', help='keep the conversation under this name'),
            _option('--resume', metavar='NAME', help='go on with a conversation, and keep it'),
            _option(
                '--continue',
                dest='resume_last',
                action='store_true',
                help='go on with the last conversation in this directory that has no name',
            ),
        ),
        ending="""\
tool-approval run --model openai-chat:gpt-5.2                  talk with an agent about this directory
tool-approval run --model openai-chat:gpt-5.2 "Mend the tests" one turn, and the end
tool-approval run --strict "What is in here?"                  nothing that needs approval runs
tool-approval run --agent assistants.mail:agent                an agent of your own
tool-approval run --continue                                   go on with the last conversation here
tool-approval run --save mending; tool-approval run --resume mending

exit status: 0 done, 1 the last turn failed, 2 called wrongly or not started, 130 the last turn was stopped
in place of --model, the variable TOOL_APPROVAL_MODEL names the model""",
    ),
    CommandEntry(
        'init',
        'write an approvals.yaml for a directory',
        options=(
            _option('--preset', action='append', metavar='NAME', help='extend this preset; those that fit if none'),
            _flag('--network', 'let commands use the network'),
            _flag('--strict', 'deny what would be asked'),
            _ROOTS_BEGIN,
            _flag('--yes', 'write and trust it without asking anything'),
        ),
        ending="""\
examples:
  tool-approval init
  tool-approval init --preset default --preset python --preset git
  tool-approval init --yes

It asks what the options do not say, shows the file and what it allows, and writes it where there is none. You have seen
it then, so it is trusted.

exit status: 0 it is written, 2 it is not
""",
    ),
    CommandEntry(
        'demo',
        'see approvals at work, without a model or a network',
        options=(
            _option(
                'story',
                nargs='?',
                default='port',
                choices=('port', 'edit', 'nested', 'batch', 'restart'),
                help='which story; port',
            ),
            _option('--answers', metavar='LETTERS', help='answer for the person: a letter for each question'),
            _MODEL,
        ),
        ending="""\
tool-approval demo                                find what listens on a port, and stop it
tool-approval demo edit                           diffs before files change
tool-approval demo nested                         an agent inside a tool
tool-approval demo batch                          several calls at once
tool-approval demo restart                        an answer to an agent whose process was killed
tool-approval demo --answers yn                   answers for you: yes, then no
tool-approval demo --model openai-chat:gpt-5.2    a real model in place of the script

y approves, n denies, ? tells what the other keys do. Nothing that a story makes outlives it.
exit status: 0 played to its end, 2 called wrongly or failed, 130 stopped""",
    ),
    CommandEntry(
        'explain',
        'what the policy says to a call, and why; nothing is run',
        options=(
            _option('tool', nargs='?', metavar='TOOL', help='shell, read_file, move ..., or any other tool'),
            _option('args', nargs='*', metavar='ARGS', help='a command, a path, or a JSON object'),
            _option('--dest', help='the destination of move and copy'),
            _JSON,
            _option('--config', metavar='FILE', help='the configuration; the approvals.yaml of the directory if not'),
            _option('--cwd', metavar='DIR', help='the working directory of the call'),
            _option('--batch', metavar='FILE', help='judge lines of JSON; - for standard input'),
            _flag('--labels', 'show what each word of a shell command is taken for'),
        ),
        ending="""\
examples:
  tool-approval explain shell 'git status; rm x'
  tool-approval explain read_file notes/a.txt
  tool-approval explain move notes/a.txt --dest notes/b.txt
  tool-approval explain send_mail '{"to": "ada"}' --config approvals.yaml
  tool-approval explain --json shell 'echo $(curl example.com)'
  tool-approval explain --batch calls.jsonl
  tool-approval explain --labels shell 'git log -n5'

Each line of a batch is {"id": ..., "tool": ..., "args": {...}}, with "config" and "cwd" if need be.
What begins with a dash comes after `--`: tool-approval explain shell -- '-x'

exit status: 0 allow, 10 ask, 20 block, 2 it could not be judged; of a batch: 0 all lines were answered, 2 it failed
""",
    ),
    CommandEntry(
        'check',
        'find the mistakes in approvals.yaml, and what it allows too much',
        options=(_FILE, _ROOTS_BEGIN, _flag('--strict', 'fail where there are warnings'), _JSON),
        ending="""\
examples:
  tool-approval check
  tool-approval check approvals.yaml --strict
  tool-approval check --json

exit status: 0 it can be used, 1 there are warnings and --strict, 2 it cannot be used
""",
    ),
    CommandEntry(
        'trust',
        'trust an approvals.yaml that was found in a working tree',
        options=(
            _FILE,
            _ROOTS_BEGIN,
            _flag('--yes', 'trust it without being asked'),
            _flag('--revoke', 'trust it no longer'),
        ),
        ending="""\
examples:
  tool-approval trust
  tool-approval trust approvals.yaml
  tool-approval trust approvals.yaml --revoke

It asks, and needs a terminal for that; `--yes` answers. A file that changes afterwards is not trusted any more.

exit status: 0 it is trusted, or with --revoke no longer is; 2 it is not
""",
    ),
    CommandEntry(
        'memory',
        'list, forget or clear the approvals that hold always',
        actions=(
            CommandEntry(
                'list',
                'what is remembered, oldest first',
                options=(_flag('--json', 'answer in JSON, one line for each'), _STORE),
            ),
            CommandEntry('forget', 'forget one', options=(_ID, _STORE)),
            CommandEntry('clear', 'forget all of them', options=(_flag('--yes', 'do it without being asked'), _STORE)),
        ),
        ending="""\
examples:
  tool-approval memory list
  tool-approval memory forget 3f2a90c1
  tool-approval memory clear

Approvals of all projects are kept in one file, and listed together. Each holds in the project that it was given in; the
file does not name that.

exit status: 0 it is done, 2 it is not
""",
    ),
    CommandEntry(
        'audit',
        'show or verify the log of decisions',
        actions=(
            CommandEntry('show', 'a line for each entry; nothing is verified', options=(_LOG,)),
            CommandEntry(
                'verify',
                'whether every line is as it was written',
                options=(
                    _option('--key', required=True, metavar='FILE', help='the file with the key of the log'),
                    _option(
                        '--head', metavar='DIGEST', help='the head that was noted: lines cut off since are noticed'
                    ),
                    _JSON,
                    _LOG,
                ),
            ),
        ),
        ending="""\
examples:
  tool-approval audit show log/audit.jsonl
  tool-approval audit verify log/audit.jsonl --key ~/.config/my-agent/audit.key
  tool-approval audit verify log/audit.jsonl --key audit.key --head 3f2a...

exit status: 0 it is shown, or intact; 1 it is not intact; 2 it could not be read
""",
    ),
    CommandEntry(
        'serve',
        'answer what waits in the inbox, in the browser',
        options=(
            _PLACE,
            _option('--host', default='127.0.0.1', help='where to listen; this machine alone if not given'),
            _option('--port', type=int, default=8765, help='8765 if not given; 0 takes a free one'),
            _option(
                '--approver',
                action='append',
                metavar='ID[=GROUP,...]',
                help='who gets a link; the user of this machine if not',
            ),
            _option('--path', help='serve below this path; one that nobody can guess if not given'),
            _option('--allow-host', action='append', default=[], metavar='NAME', help='a name in the address'),
            _flag('--behind-proxy', 'a proxy on this machine says who calls, and TLS'),
        ),
        ending="""\
examples:
  tool-approval serve                                     the inbox of this user, on this machine alone
  tool-approval serve --store state/inbox.sqlite          another one
  tool-approval serve --approver ada --approver bob=ops   two people; bob is in the group ops
  tool-approval serve --path /approvals --allow-host approvals.example --behind-proxy

Each line that is printed is a link for one person. It works once, within an hour; Ctrl-C ends the page.
""",
    ),
    CommandEntry(
        'runs',
        'durable runs: list or show them, cancel one, settle a call',
        actions=(
            CommandEntry(
                'list',
                'the runs, the newest first',
                options=(
                    _option(
                        '--status',
                        choices=('queued', 'waiting', 'done', 'failed', 'cancelled'),
                        help='only those of this status',
                    ),
                    _flag('--json', 'answer in JSON, one line for each'),
                    _PLACE,
                ),
            ),
            CommandEntry(
                'show', 'what a run waits for, what it asked, and what it executed', options=(_RUN, _JSON, _PLACE)
            ),
            CommandEntry('cancel', 'end a run, and withdraw its questions', options=(_RUN, _PLACE)),
            CommandEntry(
                'settle',
                'say what came of a call that is unknown',
                options=(
                    _RUN,
                    _option('call', metavar='CALL', help="the call's id, or its key where the id is not enough"),
                    [
                        _option('--result', metavar='JSON', help='it happened, and this is its result'),
                        _flag('--again', 'run it again'),
                        _flag('--give-up', 'do not run it again; the model reads that its outcome is unknown'),
                    ],
                    _PLACE,
                ),
            ),
        ),
        ending="""\
examples:
  tool-approval runs list --status waiting
  tool-approval runs show order-17
  tool-approval runs cancel order-17 --store postgresql://ada@db.example/shop
  tool-approval runs settle order-17 call_1 --result '"paid, receipt 4711"'

exit status: 0 it is done, 2 it is not
""",
    ),
    CommandEntry(
        'doctor',
        'what works on this machine, and what to install',
        ending="""\
examples:
  tool-approval doctor

It starts a harmless command to see whether the operating system can confine one. Nothing is changed.

exit status: 0 everything that has to works, 1 something does not
""",
    ),
)
"""Commands in the order of the help text."""
