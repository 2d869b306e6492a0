"""Convert a syntax tree into simple commands.

Node types that this module does not list are reported as problems. Only blanks are accepted between two nodes, so that
bash cannot split the text in another way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from .grammar import Parsed, are_joined, is_plain_heredoc, parse
from .words import NAME, WORDS, Redirect, SimpleCommand, Word, WordReader, fixed

if TYPE_CHECKING:
    from tree_sitter import Node

_GAP: Final = re.compile(rb'(?:[ \t\n]|\\\n)*')
_BLANK: Final = re.compile(rb'(?=.*[ \t])(?:[ \t]|\\\n)+', re.DOTALL)
_OPERATORS: Final = {
    'program': '; &', 'list': '&& || ; &', 'pipeline': '| |&', 'subshell': '( ) ; &', 'compound_statement': '{ } ; &',
    'negated_command': '!', 'if_statement': 'if then fi ; &', 'elif_clause': 'elif then ; &', 'else_clause': 'else ; &',
    'while_statement': 'while until ;', 'do_group': 'do done ; &', 'for_statement': 'for select in ;',
    'case_statement': 'case in esac ;', 'case_item': '( ) | ; & ;; ;& ;;&', 'command_substitution': '$( ) ` ; &',
    'process_substitution': '<( >( ) ; &',
}  # fmt: skip
"""Operators and keywords allowed in each type of node that contains commands."""
_BEFORE_COMMENT: Final = re.compile(rb'(?:\A|[ \t;]|(?<!\\)\n)\Z')
_CLAUSES: Final = ('elif_clause', 'else_clause', 'do_group', 'case_item', 'comment')
_KEYWORDS: Final = frozenset({
    'if', 'then', 'else', 'elif', 'fi', 'case', 'esac', 'for', 'while', 'until', 'do', 'done', 'in', 'function',
    'select', '{', '}', '!', '[[', ']]',
})  # fmt: skip
_DESCRIPTOR: Final = re.compile(r'[0-9]+|\{\w+\}')
_REGEX: Final = re.compile(r'(?:[\w.^+*?\[\]{},:-]|\\\.)+\$?', re.ASCII)
"""Matches a regular expression without quotes, expansions, groups or blanks, so that bash reads it as one word."""
_PATTERN: Final = re.compile(r'[\w*?./+-]+')


class CommandReader:
    """Collects the simple commands of a line, in order, and the problems that prevent a reliable analysis."""

    def __init__(self, parsed: Parsed, runner: SimpleCommand | None = None) -> None:
        """Read a parsed line.

        Args:
            parsed: The line.
            runner: The command that runs the line as a script. The script has the same standard input as this command.
        """
        self.commands: list[SimpleCommand] = []
        self.problems: list[str] = []
        self.has_loop = False
        self._parsed = parsed
        self._words = WordReader(parsed, self._problem, self._statement)
        self._is_fed = runner is not None and runner.is_fed
        self._heredocs_end = 0
        if parsed.problem is not None:
            self._problem(parsed.problem)
        if parsed.root is not None:
            self._statement(parsed.root)
            self._gap(0, parsed.root.start_byte)
            self._gap(parsed.root.end_byte, len(parsed.source))

    def _problem(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def _statement(self, node: Node) -> None:
        match node.type:
            case 'command' | 'variable_assignments':
                self._command(node.children, node)
            case 'variable_assignment':
                self._command([node], node)
            case 'redirected_statement':
                self._redirected(node)
            case 'comment':
                # Attack: after a backslash at the end of a line, `#` belongs to the last word (test_reading.py).
                if not _BEFORE_COMMENT.search(self._parsed.source[: node.start_byte]):
                    self._problem('a `#` that may be part of a word')
            case 'test_command':
                self._test(node)
            case 'declaration_command' | 'unset_command' | 'function_definition':
                self._declaration(node)
            case kind if kind in _OPERATORS:
                self._container(node)
            case kind if kind in WORDS:
                self._words.read(node)
            case _:
                self._unknown(node, node.named_children)

    def _unknown(self, node: Node, parts: Sequence[Node], where: str = '') -> None:
        self._problem(f'{node.type.replace("_", " ")}{where}')
        for part in parts:
            self._statement(part)

    def _container(self, node: Node) -> None:
        text = self._parsed.text(node)
        # Bash may read `((` as arithmetic, the grammar as two subshells.
        if text.startswith(('((', '$((', '$[')):
            self._problem('brackets that may be arithmetic')
        # In bash, the next backquote ends the substitution, quoted or not. The grammar nests backquotes.
        if text.startswith('`') and ('\\' in text or '`' in text[1:-1]):
            self._problem('backquotes that contain a backslash or other backquotes')
        self.has_loop = self.has_loop or node.type in ('for_statement', 'while_statement')
        before = self._is_fed
        for at, child in enumerate(node.children):
            if at:
                self._check_between(node.children[at - 1], child)
            if not child.is_named:
                if child.type not in _OPERATORS[node.type].split():
                    self._problem(f'`{child.type}` in this place')
                self._is_fed = self._is_fed or node.type == 'pipeline'
            elif node.type == 'for_statement' and child.type == 'variable_name':
                name = self._parsed.text(child)
                self.commands.append(SimpleCommand((), name, assignments=(name,)))
            elif node.type == 'case_item' and child.type == 'extglob_pattern':
                if not _PATTERN.fullmatch(self._parsed.text(child)):
                    self._problem('a pattern of `case`')
            else:
                self._statement(child)
        self._is_fed = before

    def _check_between(self, before: Node, after: Node) -> bytes:
        # A backslash at the end of a line joins the line with the next line.
        gap = self._gap(before.end_byte, after.start_byte).replace(b'\\\n', b'')
        if not gap and all(each.is_named or each.type.isalpha() or each.type == '!' for each in (before, after)):
            self._problem('two words without a blank between them')
        is_command = [each.is_named and each.type not in WORDS for each in (before, after)]
        is_apart = before.type == 'comment' or after.type in _CLAUSES or b'\n' in gap
        if all(is_command) and not is_apart:
            self._problem('two commands without a separator between them')
        return gap

    def _gap(self, start: int, end: int) -> bytes:
        gap = self._parsed.source[start:end]
        if start > end or not _GAP.fullmatch(gap):
            self._problem('text between two words')
        return gap

    def _redirected(self, node: Node) -> None:
        body, *redirects = node.children or [node]
        if body.type == 'command':
            self._command([*body.children, *redirects], node)
        elif body.type.endswith('_redirect'):
            self._command(node.children, node)
        else:
            before = self._is_fed
            self._is_fed = before or not all(map(_is_output, redirects))
            self._statement(body)
            self._is_fed = before
            for left, right in pairwise(node.children):
                self._gap(left.end_byte, right.start_byte)
            self._command(redirects, node)

    def _command(self, children: Sequence[Node], node: Node) -> None:
        words: list[Word] = []
        names: list[str] = []
        redirects: list[Redirect] = []
        for at, child in enumerate(children):
            if at:
                words.extend(self._between(children[at - 1], child))
            match child.type:
                case 'variable_assignment' if not words:
                    names.append(self._assignment(child))
                case 'command_name':
                    words.append(self._words.read(child.children[0] if len(child.children) == 1 else child))
                case 'file_redirect':
                    words.extend(self._redirect(child, redirects))
                case 'herestring_redirect' if len(child.children) == 2:
                    self._words.read(child.children[1])
                case 'heredoc_redirect':
                    pass
                case kind if kind in WORDS:
                    words.append(self._words.read(child))
                case _:
                    self._unknown(child, [child] if child.is_named else [], ' in a command')
        if words:
            self._check_program(words[0].raw)
        has_input = any(child.type.endswith('_redirect') and not _is_output(child) for child in children)
        raw, is_fed = self._parsed.text(node), self._is_fed or has_input
        self.commands.append(SimpleCommand(tuple(words), raw, tuple(names), tuple(redirects), is_fed))
        for child in children:
            if child.type == 'heredoc_redirect':
                self._heredoc(child)

    def _check_program(self, raw: str) -> None:
        if raw in _KEYWORDS:
            self._problem(f'the keyword `{raw}` in place of a program')
        if re.match(r'[A-Za-z_]\w*(?:\+?=|\[)', raw):
            self._problem('a program name that may be an assignment')

    def _between(self, before: Node, after: Node) -> list[Word]:
        """Check for blanks between two nodes. Return the `-` before a here-document, because the tree omits it."""
        gap = self._parsed.source[before.end_byte : after.start_byte]
        if after.type == 'heredoc_redirect' and re.fullmatch(rb'[ \t]+-[ \t]+', gap):
            return [fixed('-')]
        has_descriptor = bool(after.children) and after.children[0].type == 'file_descriptor'
        if gap == b'' and after.type.endswith('_redirect') and not has_descriptor:
            # Attack: to bash, `0` in `find -newer 0<f -name` is a descriptor, and `-name` the file.
            if _DESCRIPTOR.fullmatch(self._parsed.text(before)):
                self._problem('a word that may be a file descriptor')
        elif not _BLANK.fullmatch(gap):
            self._problem('two words without a blank between them')
        return []

    def _assignment(self, node: Node) -> str:
        name, *rest = node.children
        text = self._parsed.text(name)
        is_plain = (
            [child.type for child in rest[:1]] in (['='], ['+=']) and len(rest) <= 2 and are_joined(node.children)
        )
        if name.type != 'variable_name' or not NAME.fullmatch(text) or not is_plain:
            self._problem('an assignment')
        for value in rest[1:]:
            self._statement(value)
        return text

    def _redirect(self, node: Node, redirects: list[Redirect]) -> list[Word]:
        operator, *targets = [child for child in node.children if child.type != 'file_descriptor'] or [node]
        words = [self._words.read(child) for child in targets]
        for before, after in pairwise(targets):
            self._between(before, after)
        gaps = [self._gap(before.end_byte, after.start_byte) for before, after in pairwise(node.children)]
        if b'\n' in b''.join(gaps).replace(b'\\\n', b''):
            self._problem('a redirection')
        if operator.type in ('>&-', '<&-'):
            return words
        if operator.type not in ('<', '>', '>>', '>|', '&>', '&>>', '>&', '<&') or not words:
            self._problem('a redirection')
            return words
        target, *more = words
        is_duplicate = operator.type in ('>&', '<&') and target.is_fixed and re.fullmatch(r'\d+-?|-', target.raw)
        if not is_duplicate:
            redirects.append(Redirect(target, is_write=operator.type != '<'))
        return more

    def _heredoc(self, node: Node) -> None:
        # Attack: nested here-documents, where bash and the grammar disagree on the end of the inner one.
        is_behind = node.start_byte >= self._heredocs_end
        self._heredocs_end = max(self._heredocs_end, node.end_byte)
        is_plain = is_behind and is_plain_heredoc(node, self._parsed)
        before = self._is_fed
        self._is_fed = before or any(child.type in ('pipeline', '|') for child in node.children)
        for child in node.children:
            match child.type:
                case 'heredoc_start' | 'heredoc_end' | 'heredoc_content':
                    pass
                case 'heredoc_body':
                    for part in child.children:
                        if part.type != 'heredoc_content':
                            self._words.read(part)
                case 'file_redirect':
                    self._command([child], child)
                case kind if child.is_named and kind not in WORDS:
                    self._statement(child)
                case kind:
                    # A word after the delimiter is an argument, or part of the delimiter. Attack: `rm -<<E`, where
                    # the grammar reads the word `-` as part of the operator.
                    is_plain = is_plain and self._parsed.text(child) == kind in ('<<', '<<-', '&&', '||', '|')
        if not is_plain:
            self._problem('a here-document')
        self._is_fed = before

    def _test(self, node: Node) -> None:
        text = self._parsed.text(node)
        # Attack: `[abc]` is a glob that may run a program `a`. A test has a blank after `[` (test_reading.py).
        opening, closing = ('[[', ']]') if text.startswith('[[') else ('[', ']')
        inner = text.removeprefix(opening).removesuffix(closing)
        if not re.match(r'[ \t]', inner) or not re.search(r'(?<!\\)[ \t]\Z', inner):
            self._problem('brackets that may be a glob, because a blank is missing after `[` or before `]`')
        words: list[Word] = []
        self._leaves(node, words)
        self.commands.append(SimpleCommand(tuple(words), text, is_fed=self._is_fed))

    def _leaves(self, node: Node, words: list[Word]) -> None:
        for at, child in enumerate(node.children):
            gap = self._check_between(node.children[at - 1], child) if at else b''
            # Attack: `[ a || ./b ]`, `[ a > b ]`. Only `[[` has operators of its own, and spans lines.
            is_operator = not child.is_named and re.search(r'[()<>|&;]', child.type)
            if words and words[0].value == '[' and (is_operator or b'\n' in gap):
                self._problem(f'`{child.type}` in `[`')
            text = self._parsed.text(child)
            if child.type in ('unary_expression', 'binary_expression', 'parenthesized_expression'):
                self._leaves(child, words)
            elif not child.is_named:
                words.append(fixed(child.type))
            elif child.type == 'regex' and _REGEX.fullmatch(text):
                words.append(fixed(text))
            elif child.type in WORDS or child.type == 'extglob_pattern':
                words.append(self._words.read(child))
            else:
                self._unknown(child, [child], ' in a test')

    def _declaration(self, node: Node) -> None:
        raw = self._parsed.text(node)
        keyword = raw.split()[0]
        self._problem(f'`{keyword}`, which can affect other commands')
        if node.type != 'function_definition':
            self.commands.append(SimpleCommand((fixed(keyword),), raw))
        for child in node.named_children:
            self._statement(child)


def _is_output(node: Node) -> bool:
    return node.type == 'file_redirect' and not any(child.type in ('<', '<&') for child in node.children)


def simple_words(command: str) -> tuple[str, ...] | None:
    """Return the words of a line if it is one simple command of fixed words, whose program has no folder."""
    words = fixed_words(command)
    return None if words is None or '/' in words[0] else words


def fixed_words(command: str) -> tuple[str, ...] | None:
    """Return the words of a line that is one simple command of fixed words; otherwise `None`."""
    reader = CommandReader(parse(command))
    if reader.problems or reader.has_loop or len(reader.commands) != 1:
        return None
    [found] = reader.commands
    words = tuple(word.value for word in found.words)
    is_alone = found.raw == command.strip() and not found.is_fed and not found.redirects and not found.assignments
    is_fixed = all(word.is_fixed for word in found.words) and '\0' not in ''.join(words)
    return words if words and is_alone and is_fixed else None
