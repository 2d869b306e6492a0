"""List the commands with their options and help texts. Each command has a module with a function `run`."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Option: TypeAlias = tuple[Sequence[str], dict[str, Any]]
"""Positional and keyword arguments for `ArgumentParser.add_argument`."""


@dataclass(frozen=True)
class CommandEntry:
    """One command, or one action of a command."""

    name: str
    summary: str
    options: Sequence[Option | list[Option]] = ()
    """Options in the order of the help text. The options of an inner list exclude each other."""
    actions: Sequence[CommandEntry] = ()
    """Actions of the command. If the command has actions, the user must name one of them."""
    ending: str | None = None
    """End of the help text: examples, and the exit statuses that are specific to the command."""


def _option(*names: str, **settings: Any) -> Option:
    return names, settings


def _number(text: str) -> int:
    """Read the positive number of an option.

    Raises:
        ArgumentTypeError: The text is something else.
    """
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= _MOST):
        raise ArgumentTypeError(f'{text!r} is not a whole number from 1 to {_MOST}')
    return int(text)


_MOST: Final = 86_400
"""The most that an option with a number takes, which as seconds is the most that settings allow for a command."""


def _flag(name: str, help: str) -> Option:
    return (name,), {'action': 'store_true', 'help': help}


SHORTEST_ID: Final = 8
"""Number of digits that lists show of each 64-digit id. An approval is identified by at least this many digits."""

_JSON: Final = _flag('--json', 'answer in JSON')
_FILE: Final = _option('file', nargs='?', metavar='FILE', help='the settings file; by default, approvals.yaml here')
_ROOTS_BEGIN: Final = _option('--cwd', metavar='DIR', help='the directory from which relative paths start')
_MODEL: Final = _option('--model', metavar='NAME', help='a Pydantic AI model, such as openai-chat:gpt-5.2')
_ID: Final = _option('id', metavar='ID', help=f'the first digits of the id, at least {SHORTEST_ID}')
_STORE: Final = _option('--store', metavar='FILE', help='the file of approvals; by default, in your state directory')
_PLACE: Final = _option('--store', metavar='PLACE', help='the inbox: a file, or postgresql://...; by default, your own')
_RUN: Final = _option('run', metavar='RUN', help='the id of the run')
_SETTINGS: Final = _option('--settings', metavar='FILE', help='the settings file; by default, approvals.yaml here')
_ASK_IN_INBOX: Final = _flag('--inbox', 'ask in the inbox, and wait for the answer')
_WHERE_TO_ASK: Final = [
    _flag('--inbox', 'ask in the inbox, not at the terminal'),
    _flag('--never-ask', 'ask no question: deny what was not approved before'),
]
_CONFIG: Final = _option('--config', metavar='FILE', help='the settings file; a file named here is trusted')
_CLIENT: Final = _option('client', choices=('claude', 'codex'), help='Claude Code or Codex')
_KEY: Final = _option('--key', metavar='FILE', help="the file with the log's key")
_LOG: Final = _option('log', nargs='?', metavar='LOG', help='the log; by default, the log of `tool-approval run`')

COMMANDS: Final = (
    CommandEntry(
        'run',
        'run an agent in this directory, with approvals in the terminal',
        options=(
            _option('prompt', nargs='?', help='what the agent should do; without it, a conversation starts'),
            _MODEL,
            [
                _option('--mode', choices=('interactive', 'strict', 'approve_all'), help='overrides the settings'),
                _flag('--approve-all', 'approve calls that need approval; blocked calls stay blocked'),
                _flag('--strict', 'deny calls that require approval'),
            ],
            _option('--config', metavar='FILE', help='the settings file; a file named here is trusted'),
            _flag('--no-os-sandbox', 'do not confine commands'),
            _flag('--inbox', 'also put questions in the inbox, to be answered on the page of `serve` or in Slack'),
            _option('--requests', metavar='N', type=_number, help='the most requests of a turn; by default 1000'),
            _option('--retries', metavar='N', type=_number, help='the most repeats of an invalid call; by default 10'),
            _option('--timeout', metavar='SECONDS', type=_number, help='overrides the time limit of commands'),
            _option('--agent', metavar='MODULE:NAME', help='use your own agent; modules in this directory come first'),
            _option('--save', metavar='NAME', help='save the conversation under this name'),
            _option('--resume', metavar='NAME', help='continue a saved conversation, and save each new turn in it'),
            _option(
                '--continue',
                dest='resume_last',
                action='store_true',
                help='continue the last unnamed conversation in this directory',
            ),
        ),
        ending="""\
tool-approval run --model openai-chat:gpt-5.2                  talk to an agent about this directory
tool-approval run --model openai-chat:gpt-5.2 "Fix the tests"  one turn only
tool-approval run --strict "What is in here?"                  deny everything that needs approval
tool-approval run --agent assistants.mail:agent                your own agent
tool-approval run --continue                                   continue the last conversation here
tool-approval run --save fix; tool-approval run --resume fix

The environment variable TOOL_APPROVAL_MODEL can name the model in place of --model.
exit status: 0 = done, 1 = the last turn failed, 2 = wrong usage, or agent not started, 130 = the last turn stopped""",
    ),
    CommandEntry(
        'exec',
        'run one command, confined, and ask for more access at the terminal',
        options=(
            _option(
                'words', nargs='+', metavar='COMMAND', help='a line for bash in one word, or the words of a command'
            ),
            _option('--access', metavar='NAMES', help='ask for write, git, network or environment; or for host alone'),
            _WHERE_TO_ASK,
            _CONFIG,
            _option('--cwd', metavar='DIR', help='the directory in which the command runs, with its settings'),
        ),
        ending="""\
examples:
  tool-approval exec -- pytest -q                         confined; without network, and writing nothing
  tool-approval exec -- 'make 2>&1 | tail -5'             a line for bash
  tool-approval exec --access write,network -- npm ci     you are asked first
  tool-approval exec --never-ask -- ./build.sh            denied, if it needs more than the rules give

The rules are those of `tool-approval run` in this directory. The command has no standard input.

exit status: that of the command; 124 = ended at the time limit, 125 = not run, 128 + N = ended by signal N""",
    ),
    CommandEntry(
        'hook',
        'judge the calls of Claude Code or Codex, as a hook of theirs',
        actions=(
            CommandEntry('claude', 'judge a call of Claude Code, given on standard input', options=(_ASK_IN_INBOX,)),
            CommandEntry('codex', 'judge a call of Codex, given on standard input', options=(_ASK_IN_INBOX,)),
            CommandEntry(
                'install',
                "add the hook to a client's settings of yours",
                options=(_CLIENT, _ASK_IN_INBOX, _flag('--yes', 'add it without confirmation')),
            ),
            CommandEntry(
                'uninstall',
                "remove the hook from a client's settings of yours",
                options=(_CLIENT, _flag('--yes', 'remove it without confirmation')),
            ),
        ),
        ending="""\
examples:
  tool-approval hook install claude             Claude Code asks you about what the rules do not allow
  tool-approval hook install codex --inbox      questions are in your inbox: `tool-approval serve`
  tool-approval hook uninstall claude
  tool-approval doctor                          prove that an installed hook denies

exit status of claude and codex: 0 = the call may run, or the client decides; 2 = denied, or anything went wrong
exit status of install and uninstall: 0 = done, 2 = nothing was changed""",
    ),
    CommandEntry(
        'mcp',
        'ask about the calls that an MCP client makes to an MCP server',
        options=(
            _option('words', nargs='*', metavar='SERVER', help='the command that starts the server, and its arguments'),
            _option('--name', required=True, metavar='NAME', help='the name in rules: mcp__NAME__TOOL'),
            _WHERE_TO_ASK,
            _CONFIG,
            _option('--cwd', metavar='DIR', help='the directory in which the server runs, with its settings'),
            _flag('--accept', 'show the tools that the server has changed, and accept them after a question'),
            _flag('--yes', 'accept them without a question'),
        ),
        ending="""\
examples:
  tool-approval mcp --name github --inbox -- npx -y @modelcontextprotocol/server-github
  tool-approval mcp --name notes --never-ask -- python3 notes_server.py
  tool-approval mcp --name github --accept      look at the tools that are withheld

A client starts this command in place of the server's. Standard input and output belong to the protocol.

exit status: 0 = the client ended the connection; 2 = the server ended, could not be started, or wrong usage;
128 + N = ended by signal N""",
    ),
    CommandEntry(
        'mcp-tools',
        'offer the file tools and the shell of `run` to an MCP client',
        options=(
            _WHERE_TO_ASK,
            _CONFIG,
            _option('--cwd', metavar='DIR', help='the directory in which the tools work, with its settings'),
        ),
        ending="""\
A client starts this command as a server. Standard input and output belong to the protocol.

exit status: 0 = the client ended the connection, 128 + N = ended by signal N""",
    ),
    CommandEntry(
        'init',
        'write an approvals.yaml for a directory',
        options=(
            _option('--preset', action='append', metavar='NAME', help='extend a preset; by default, `default`'),
            _flag('--network', 'let commands use the network'),
            _flag('--strict', 'deny calls that require approval'),
            _ROOTS_BEGIN,
            _flag('--yes', 'write the file and trust it without asking'),
        ),
        ending="""\
examples:
  tool-approval init
  tool-approval init --preset read-only
  tool-approval init --yes

The command asks for settings that you did not give as options, shows the new file and what it would allow, and writes
the file. An existing file is never replaced. The new file is trusted, because you have seen it.

exit status: 0 = written, 2 = not written
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
                help='the story to play (default: `port`)',
            ),
            _option('--answers', metavar='LETTERS', help='answer the questions with these letters, in order'),
            _MODEL,
        ),
        ending="""\
tool-approval demo                                find what listens on a port, and stop it
tool-approval demo edit                           diffs before files change
tool-approval demo nested                         an agent inside a tool
tool-approval demo batch                          several calls at once
tool-approval demo restart                        an agent gets its answer after its process was killed
tool-approval demo --answers yn                   answers for you: yes, then no
tool-approval demo --model openai-chat:gpt-5.2    a real model in place of the script

y approves, n denies, ? explains the other keys. A story leaves nothing behind.
exit status: 0 = story completed, 2 = wrong usage or failure, 130 = stopped""",
    ),
    CommandEntry(
        'explain',
        'show what the policy decides about a call, and why, without running it',
        options=(
            _option('tool', nargs='?', metavar='TOOL', help='shell, read_file, move ..., or any other tool'),
            _option('args', nargs='*', metavar='ARGS', help='a command, a path, or a JSON object'),
            _option('--dest', help='the destination of move and copy'),
            _JSON,
            _option('--config', metavar='FILE', help='the settings file; by default, approvals.yaml in the directory'),
            _option('--cwd', metavar='DIR', help='the working directory of the call'),
            _option('--batch', metavar='FILE', help='judge each line of a JSON Lines file; - for standard input'),
            _flag('--labels', 'show how each word of a shell command is understood'),
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

Each line of a batch is {"id": ..., "tool": ..., "args": {...}}, optionally with "config" and "cwd".
Put arguments that begin with a dash after `--`: tool-approval explain shell -- '-x'

exit status: 0 = allow, 10 = ask, 20 = block, 2 = not judged; with --batch: 0 = every line was answered, 2 = failed
""",
    ),
    CommandEntry(
        'check',
        'find mistakes in approvals.yaml, and rules that allow too much',
        options=(_FILE, _ROOTS_BEGIN, _flag('--strict', 'fail if there are warnings'), _JSON),
        ending="""\
examples:
  tool-approval check
  tool-approval check approvals.yaml --strict
  tool-approval check --json

exit status: 0 = usable, 1 = warnings with --strict, 2 = not usable
""",
    ),
    CommandEntry(
        'trust',
        'trust an approvals.yaml found in a working tree',
        options=(
            _FILE,
            _ROOTS_BEGIN,
            _flag('--yes', 'trust the file without confirmation'),
            _flag('--revoke', 'stop trusting the file'),
        ),
        ending="""\
examples:
  tool-approval trust
  tool-approval trust approvals.yaml
  tool-approval trust approvals.yaml --revoke

The command asks for confirmation, unless `--yes` is given. A file that changes afterwards is no longer trusted.

exit status: 0 = trusted, 2 = not trusted; with --revoke: 0 = done, 2 = failed
""",
    ),
    CommandEntry(
        'memory',
        'list, forget or clear permanent approvals',
        actions=(
            CommandEntry(
                'list',
                'list remembered approvals, oldest first',
                options=(_flag('--json', 'answer in JSON, one line for each entry'), _STORE),
            ),
            CommandEntry('forget', 'forget one approval', options=(_ID, _STORE)),
            CommandEntry(
                'clear', 'forget all approvals', options=(_flag('--yes', 'forget them without confirmation'), _STORE)
            ),
        ),
        ending="""\
examples:
  tool-approval memory list
  tool-approval memory forget 3f2a90c1
  tool-approval memory clear

One file contains the approvals of all projects. An approval applies only in the project in which it was given.

exit status: 0 = done, 2 = failed
""",
    ),
    CommandEntry(
        'audit',
        'show or verify the log of calls and decisions',
        actions=(
            CommandEntry('show', 'show a line for each entry, without verifying the log', options=(_LOG,)),
            CommandEntry(
                'verify',
                'verify that every line is unchanged',
                options=(
                    _option('--key', metavar='FILE', help="the file with the log's key; needed if a log is named"),
                    _option('--head', metavar='DIGEST', help='detect lines removed since `verify` printed this head'),
                    _JSON,
                    _LOG,
                ),
            ),
            CommandEntry('trace', 'print a trace for the checker agentack, made from the log alone', options=(_LOG,)),
        ),
        ending="""\
examples:
  tool-approval audit show                                the log of `tool-approval run`
  tool-approval audit verify
  tool-approval audit show log/audit.jsonl
  tool-approval audit verify log/audit.jsonl --key ~/.config/my-agent/audit.key
  tool-approval audit verify log/audit.jsonl --key audit.key --head 3f2a...
  tool-approval audit trace log/audit.jsonl > trace.jsonl && agentack check trace.jsonl

exit status: 0 = the log was shown or is intact, 1 = it is not intact, 2 = it could not be read
""",
    ),
    CommandEntry(
        'suggest',
        'propose rules for calls that were always approved, by the log',
        options=(
            _SETTINGS,
            _ROOTS_BEGIN,
            _option('--key', metavar='FILE', help="the file with the log's key; needed if a log is named"),
            _flag('--write', 'add the rules to the settings file, after you have read them, and trust the file'),
            _LOG,
        ),
        ending="""\
examples:
  tool-approval suggest                                   by the log of `tool-approval run`
  tool-approval suggest --write
  tool-approval suggest log/audit.jsonl --key ~/.config/my-agent/audit.key

A log that is not intact proposes nothing. `--write` needs a trusted settings file, and asks at a terminal.

exit status: 0 = shown or written, 2 = failed, or not written
""",
    ),
    CommandEntry(
        'replay',
        'show what other rules would have decided about the calls of the log',
        options=(
            _SETTINGS,
            _ROOTS_BEGIN,
            _KEY,
            _flag('--no-new-access', 'fail if a call that was asked about or refused would run unasked'),
            _LOG,
        ),
        ending="""\
examples:
  tool-approval replay                                    the log of `tool-approval run`, the settings here
  tool-approval replay --settings new.yaml
  tool-approval replay log/audit.jsonl --settings approvals.yaml --no-new-access

The settings are judged as if they were trusted and the OS sandbox worked.

exit status: 0 = done, 1 = new access with --no-new-access, 2 = failed
""",
    ),
    CommandEntry(
        'stats',
        'count questions and answers in the log',
        options=(_KEY, _LOG),
        ending="""\
examples:
  tool-approval stats                                     the log of `tool-approval run`
  tool-approval stats log/audit.jsonl

exit status: 0 = done, 2 = failed
""",
    ),
    CommandEntry(
        'serve',
        'serve a web page for answering the open requests in the inbox',
        options=(
            _PLACE,
            _option('--host', default='127.0.0.1', help='the address to listen on; by default, only this machine'),
            _option('--port', type=int, default=8765, help='the port; by default 8765; 0 takes any free port'),
            _option(
                '--approver',
                action='append',
                metavar='ID[=GROUP,...]',
                help='a person who gets a link; by default, the user of this machine',
            ),
            _option(
                '--log',
                metavar='FILE',
                help='show this audit log to every approver; by default, the log of `run`, if no approver is named',
            ),
            _option('--path', help='serve below this path; by default, a path that cannot be guessed'),
            _option('--allow-host', action='append', default=[], metavar='NAME', help="a host name in the page's URL"),
            _option('--config', metavar='FILE', help='settings whose key `notify` says who is notified, and where'),
            _flag('--behind-proxy', 'trust the headers that a proxy on this machine sends about the client and TLS'),
        ),
        ending="""\
examples:
  tool-approval serve                                     your own inbox, only on this machine
  tool-approval serve --store state/inbox.sqlite          another inbox
  tool-approval serve --approver ada --approver bob=ops   two people; bob is in the group ops
  tool-approval serve --path /approvals --allow-host approvals.example --behind-proxy
  tool-approval serve --config phone.yaml                 send links to phones, as phone.yaml says

Each printed line has one person's link. The link works once and expires after an hour. Ctrl-C stops serving the page.
""",
    ),
    CommandEntry(
        'runs',
        'list, show or cancel durable runs, or settle a call',
        actions=(
            CommandEntry(
                'list',
                'list runs, newest first',
                options=(
                    _option(
                        '--status',
                        choices=('queued', 'waiting', 'done', 'failed', 'cancelled'),
                        help='list only runs with this status',
                    ),
                    _flag('--json', 'answer in JSON, one line for each entry'),
                    _PLACE,
                ),
            ),
            CommandEntry('show', 'show the questions and executed calls of a run', options=(_RUN, _JSON, _PLACE)),
            CommandEntry('cancel', 'end a run and withdraw its questions', options=(_RUN, _PLACE)),
            CommandEntry(
                'settle',
                'settle a call whose outcome is unknown',
                options=(
                    _RUN,
                    _option('call', metavar='CALL', help="the call's id, or its key if several calls have the id"),
                    [
                        _option('--result', metavar='JSON', help='the call ran, with this result'),
                        _flag('--again', 'run the call again'),
                        _flag('--give-up', 'do not run the call again; tell the model that its outcome is unknown'),
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

exit status: 0 = done, 2 = failed
""",
    ),
    CommandEntry(
        'doctor',
        'show what works on this machine, and what to install',
        ending="""\
examples:
  tool-approval doctor

The command starts a harmless program to test whether an OS sandbox can confine it, and changes nothing.

exit status: 0 = all required parts work, 1 = a required part does not work
""",
    ),
)
"""Commands in the order of the help text."""
