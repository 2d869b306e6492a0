"""Reads the tree into simple commands. What is not on its list is not understood, and what is understood is tiled:
between two nodes there is nothing but blanks, so bash has no other way to cut the same text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final

from .grammar import Parsed, Syntax, is_plain_heredoc
from .words import NAME, WORDS, Redirect, SimpleCommand, Word, WordReader

_GAP: Final = re.compile(rb'(?:[ \t\n]|\\\n)*')
_BLANK: Final = re.compile(rb'(?=.*[ \t])(?:[ \t]|\\\n)+', re.DOTALL)
_CONTAINERS: Final = frozenset(
    {
        'program', 'list', 'pipeline', 'subshell', 'compound_statement', 'negated_command', 'if_statement',
        'elif_clause', 'else_clause', 'while_statement', 'do_group', 'for_statement', 'case_statement', 'case_item',
        'command_substitution', 'process_substitution',
    }
)  # fmt: skip
_OPERATORS: Final = {
    'program': '; &', 'list': '&& || ; &', 'pipeline': '| |&', 'subshell': '( ) ; &', 'compound_statement': '{ } ; &',
    'negated_command': '!', 'if_statement': 'if then fi ; &', 'elif_clause': 'elif then ; &', 'else_clause': 'else ; &',
    'while_statement': 'while until ;', 'do_group': 'do done ; &', 'for_statement': 'for select in ;',
    'case_statement': 'case in esac ;', 'case_item': '( ) | ; & ;; ;& ;;&', 'command_substitution': '$( ) ` ; &',
    'process_substitution': '<( >( ) ; &',
}  # fmt: skip
"""The operators and keywords that may stand in each."""
_KEYWORDS: Final = frozenset(
    {
        'if', 'then', 'else', 'elif', 'fi', 'case', 'esac', 'for', 'while', 'until', 'do', 'done', 'in', 'function',
        'select', '{', '}', '!', '[[', ']]',
    }
)  # fmt: skip
_DESCRIPTOR: Final = re.compile(r'[0-9]+|\{\w+\}')
_REGEX: Final = re.compile(r'(?:[\w.^+*?\[\]{},:-]|\\\.)+\$?', re.ASCII)
"""A regular expression without quotes, expansions, groups and blanks: to bash it is one word as well."""
_PATTERN: Final = re.compile(r'[\w*?./+-]+')


class CommandReader:
    """Collects the simple commands of a line, in order, with what is not understood of it."""

    def __init__(self, parsed: Parsed, runner: SimpleCommand | None = None) -> None:
        """Read the whole of `parsed`.

        Args:
            parsed: The line.
            runner: What runs it: a script reads what its shell is fed.
        """
        self.commands: list[SimpleCommand] = []
        self.problems: list[str] = []
        self.has_loop = False
        self._parsed = parsed
        self._words = WordReader(parsed, self._problem, self._statement)
        self._is_fed = runner is not None and runner.is_fed
        self._is_piped = runner is not None and runner.of(()).is_fed_here
        self._is_redirected = self._is_fed and not self._is_piped
        self._heredocs_end = 0
        if parsed.problem is not None:
            self._problem(parsed.problem)
        if parsed.root is not None:
            self._statement(parsed.root)
            self._gap(0, parsed.root.start)
            self._gap(parsed.root.end, len(parsed.source))

    def _problem(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def _statement(self, node: Syntax) -> None:
        match node.kind:
            case 'command':
                self._command(node.children, node)
            case 'variable_assignment' | 'variable_assignments':
                parts = node.children if node.kind == 'variable_assignments' else [node]
                self._command(parts, node)
            case 'redirected_statement':
                self._redirected(node)
            case 'comment':
                before = self._parsed.source[node.start - 1 : node.start]
                if before not in (b'', b' ', b'\t', b'\n', b';'):
                    self._problem('a comment stands where bash may see none')
            case 'test_command':
                self._test(node)
            case 'declaration_command' | 'unset_command' | 'function_definition':
                self._declaration(node)
            case kind if kind in _CONTAINERS:
                self._container(node)
            case kind if kind in WORDS:
                self._words.read(node)
            case _:
                self._problem(f'{node.kind.replace("_", " ")} is not understood')
                for child in node.children:
                    if child.is_named:
                        self._statement(child)

    def _container(self, node: Syntax) -> None:
        self._check_edges(node)
        self.has_loop = self.has_loop or node.kind in ('for_statement', 'while_statement')
        allowed = _OPERATORS[node.kind].split()
        fed, piped, before = self._is_fed, self._is_piped, None
        for child in node.children:
            if before is not None:
                self._check_between(before, child)
            if not child.is_named:
                if child.kind not in allowed:
                    self._problem(f'`{child.kind}` is not understood here')
                if child.kind in ('|', '|&') and node.kind == 'pipeline':
                    self._is_fed, self._is_piped = True, not self._is_redirected
            elif node.kind in ('for_statement', 'case_item') and child.kind in ('variable_name', 'extglob_pattern'):
                self._name(child)
            else:
                self._statement(child)
            before = child
        self._is_fed, self._is_piped = fed, piped

    def _check_edges(self, node: Syntax) -> None:
        text = self._parsed.text(node)
        # To bash, `((` may begin arithmetic where the grammar sees two subshells.
        if text.startswith(('((', '$((', '$[')):
            self._problem('it may be arithmetic')
        # To bash, the next backquote ends them, whatever is quoted in between; the grammar nests them.
        if text.startswith('`') and ('\\' in text or '`' in text[1:-1]):
            self._problem('backquotes with a backslash or a backquote in them')

    def _check_between(self, before: Syntax, after: Syntax) -> None:
        gap = self._gap(before.end, after.start)
        is_word = [each.is_named or each.kind.isalpha() for each in (before, after)]
        if all(is_word) and not gap:
            self._problem('two words stand without a blank')
        both_commands = before.is_named and after.is_named and 'comment' not in (before.kind, after.kind)
        if both_commands and after.kind not in WORDS and before.kind not in WORDS:
            is_clause = after.kind in ('elif_clause', 'else_clause', 'do_group', 'case_item')
            if not is_clause and b'\n' not in gap.replace(b'\\\n', b''):
                self._problem('two commands stand without a separator')

    def _gap(self, start: int, end: int) -> bytes:
        gap = self._parsed.source[start:end]
        if start > end or not _GAP.fullmatch(gap):
            self._problem('a part of it is not understood')
        return gap

    def _name(self, node: Syntax) -> None:
        text = self._parsed.text(node)
        if node.kind == 'variable_name':
            self.commands.append(SimpleCommand((), text, assignments=(text,)))
        elif not _PATTERN.fullmatch(text):
            self._problem('a pattern is not understood')

    def _redirected(self, node: Syntax) -> None:
        body, *redirects = node.children if node.children else [node]
        if body.kind == 'command':
            self._command([*body.children, *redirects], node)
        elif body.kind in ('file_redirect', 'heredoc_redirect', 'herestring_redirect'):
            self._command(node.children, node)
        else:
            before = self._is_fed, self._is_piped, self._is_redirected
            if not all(map(self._is_output, redirects)):
                # To the grammar, `a | (b) < f` redirects both; a pipe inside feeds nobody for sure.
                self._is_fed, self._is_piped, self._is_redirected = True, False, True
            self._statement(body)
            self._is_fed, self._is_piped, self._is_redirected = before
            at = body.end
            for child in redirects:
                self._gap(at, child.start)
                at = child.end
            self._command(redirects, node)

    def _is_fed_here(self, children: Sequence[Syntax]) -> bool:
        """Attack: `{ head; } < /etc/passwd`, `head <&3`, whose file is named elsewhere (test_honest_commands.py)."""
        inputs = [child for child in children if child.kind.endswith('_redirect') and not self._is_output(child)]
        return all(map(_is_plain_input, inputs)) and (bool(inputs) or self._is_piped)

    def _is_output(self, node: Syntax) -> bool:
        return node.kind == 'file_redirect' and not any(child.kind in ('<', '<&') for child in node.children)

    def _command(self, children: Sequence[Syntax], node: Syntax) -> None:
        words: list[Word] = []
        names: list[str] = []
        redirects: list[Redirect] = []
        tails: list[Syntax] = []
        fed, before = self._is_fed, None
        for child in children:
            if before is not None:
                words.extend(self._between(before, child))
            before = child
            match child.kind:
                case 'variable_assignment' if not words:
                    names.append(self._assignment(child))
                case 'command_name':
                    words.append(self._words.read(child.children[0] if len(child.children) == 1 else child))
                case 'file_redirect':
                    words.extend(self._redirect(child, redirects))
                    fed = fed or not self._is_output(child)
                case 'herestring_redirect' if len(child.children) == 2:
                    self._words.read(child.children[1])
                    fed = True
                case 'heredoc_redirect':
                    fed = True
                    tails.append(child)
                case kind if kind in WORDS:
                    words.append(self._words.read(child))
                case _:
                    self._problem(f'{child.kind.replace("_", " ")} is not understood in a command')
                    if child.is_named:
                        self._statement(child)
        if words:
            self._check_program(words[0])
        here = self._is_fed_here(children)
        self.commands.append(
            SimpleCommand(
                tuple(words), self._parsed.text(node), tuple(names), tuple(redirects), is_fed=fed, is_fed_here=here
            )
        )
        for tail in tails:
            self._heredoc(tail)

    def _check_program(self, word: Word) -> None:
        if word.is_bare and word.raw in _KEYWORDS:
            self._problem(f'the keyword `{word.raw}` stands in the place of a program')
        if re.match(r'[A-Za-z_]\w*(?:\+?=|\[)', word.raw):
            self._problem('it may be an assignment')

    def _check_blank(self, before: Syntax, after: Syntax) -> None:
        gap = self._parsed.source[before.end : after.start]
        is_redirect = after.kind.endswith('_redirect')
        starts_with_number = is_redirect and bool(after.children) and after.children[0].kind == 'file_descriptor'
        if is_redirect and not starts_with_number and gap == b'':
            # Attack: to bash, `0` of `find -newer 0<f -name` is no word, and `-name` is the file.
            if _DESCRIPTOR.fullmatch(self._parsed.text(before)):
                self._problem('a word may be a descriptor')
            return
        if before.end > after.start or not _BLANK.fullmatch(gap):
            self._problem('two words stand without a blank')

    def _between(self, before: Syntax, after: Syntax) -> list[Word]:
        """Blanks, or the word `-`, which the grammar loses in front of a here-document: `cat - <<E`."""
        gap = self._parsed.source[before.end : after.start]
        if after.kind == 'heredoc_redirect' and re.fullmatch(rb'[ \t]+-[ \t]+', gap):
            return [Word('-', '-')]
        self._check_blank(before, after)
        return []

    def _assignment(self, node: Syntax) -> str:
        name, *rest = node.children
        operator = rest[0].kind if rest else ''
        text = self._parsed.text(name)
        if name.kind != 'variable_name' or not NAME.fullmatch(text) or operator not in ('=', '+=') or len(rest) > 2:
            self._problem('an assignment is not understood')
        ends = [name.end, *(child.end for child in rest)]
        if any(child.start != end for child, end in zip(rest, ends, strict=False)):
            self._problem('an assignment is not understood')
        for value in rest[1:]:
            if value.kind in WORDS:
                self._words.read(value)
            else:
                self._statement(value)
        return text

    def _redirect(self, node: Syntax, redirects: list[Redirect]) -> list[Word]:
        parts = [child for child in node.children if child.kind != 'file_descriptor']
        operator, *targets = parts if parts else [node]
        words = [self._words.read(child) for child in targets]
        for child, following in itertools.pairwise(targets):
            self._check_blank(child, following)
        if operator.kind in ('>&-', '<&-'):
            return words
        if operator.kind not in ('<', '>', '>>', '>|', '&>', '&>>', '>&', '<&') or not words:
            self._problem('a redirection is not understood')
            return words
        target, *more = words
        is_duplicate = operator.kind in ('>&', '<&') and target.is_fixed and re.fullmatch(r'\d+-?|-', target.raw)
        if not is_duplicate:
            redirects.append(Redirect(target, is_write=operator.kind != '<'))
        return more

    def _heredoc(self, node: Syntax) -> None:
        # Attack: a document within another, whose end bash finds elsewhere.
        is_behind, self._heredocs_end = node.start >= self._heredocs_end, max(self._heredocs_end, node.end)
        if not is_behind or not is_plain_heredoc(node, self._parsed.source):
            self._problem('a here-document is not understood')
        fed = self._is_fed
        self._is_fed = fed or any(child.kind == 'pipeline' or child.kind == '|' for child in node.children)
        for child in node.children:
            if child.kind == 'heredoc_body':
                for part in child.children:
                    if part.kind != 'heredoc_content':
                        self._words.read(part)
            elif child.kind == 'file_redirect':
                self._command([child], child)
            elif child.kind in WORDS:
                # A word behind the delimiter is an argument, or part of the delimiter itself.
                self._problem('a here-document is not understood')
            elif child.kind not in ('heredoc_start', 'heredoc_end') and child.is_named:
                self._statement(child)
            elif not child.is_named and not self._parsed.text(child) == child.kind in ('<<', '<<-', '&&', '||', '|'):
                # Attack: `rm -<<E`, where the grammar takes the word `-` for a part of the operator.
                self._problem('a here-document is not understood')
        self._is_fed = fed

    def _test(self, node: Syntax) -> None:
        words: list[Word] = []
        gaps: list[bytes] = []
        self._leaves(node, words, gaps)
        text = self._parsed.text(node)
        # Attack: a program `a`, run by `[abc]`: a glob, as is every `[` without a blank behind it. A line that ends
        # within `[ ... ]` ends the command (test_reading.py).
        is_line = text.startswith('[[') or b'\n' not in b''.join(gaps).replace(b'\\\n', b'')
        if not is_line or not all(map(_BLANK.fullmatch, (gaps[0], gaps[-1]))):
            words[0] = Word(text, '', is_fixed=False)
        self.commands.append(SimpleCommand(tuple(words), text, is_fed=self._is_fed))

    def _leaves(self, node: Syntax, words: list[Word], gaps: list[bytes]) -> None:
        before = None
        for child in node.children:
            if before is not None:
                self._check_between(before, child)
                gaps.append(self._parsed.source[before.end : child.start])
            before = child
            if child.kind in ('unary_expression', 'binary_expression', 'parenthesized_expression'):
                self._leaves(child, words, gaps)
            elif not child.is_named:
                words.append(Word(child.kind, child.kind))
            elif child.kind in WORDS or child.kind == 'extglob_pattern':
                words.append(self._words.read(child))
            elif child.kind == 'regex' and _REGEX.fullmatch(text := self._parsed.text(child)):
                words.append(Word(text, text))
            else:
                self._problem(f'{child.kind.replace("_", " ")} is not understood in a test')
                self._statement(child)

    def _declaration(self, node: Syntax) -> None:
        raw = self._parsed.text(node)
        self._problem(f'`{raw.split()[0]}` defines or changes what other commands see')
        if node.kind != 'function_definition':
            keyword = Word(raw.split()[0], raw.split()[0], is_bare=True)
            self.commands.append(SimpleCommand((keyword,), raw))
        for child in node.children:
            if child.kind == 'variable_assignment':
                self._assignment(child)
            elif child.is_named:
                self._statement(child)


def _is_plain_input(node: Syntax) -> bool:
    """Attack: `cat <<E < /etc/passwd`, where the file stands inside of the here-document's node."""
    if node.kind == 'file_redirect':
        return node.children[0].kind == '<'
    return not any(child.kind == 'file_redirect' for child in node.children)
