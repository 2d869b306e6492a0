"""Tables of cases that run in one test: thousands of tests take a minute to be collected, sent and reported."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def table(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run all rows in one test, and report each that fails with its values; `names` as for `pytest.mark.parametrize`.

    Rows share the fixtures of the test. Parametrise where each case needs its own, or takes its time.
    """
    columns = tuple(name.strip() for name in names.split(',')) if isinstance(names, str) else names
    cases = [dict(zip(columns, row if len(columns) > 1 else [row], strict=True)) for row in rows]
    assert cases, 'a table without rows tests nothing'

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def all_rows(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for case in cases:
                try:
                    test(**fixtures, **case)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f'in the row {case!r}')
                    failures.append(error)
            if failures:
                raise BaseExceptionGroup(f'{len(failures)} of {len(cases)} rows fail', failures)

        own = inspect.signature(test)
        fixtures = [parameter for name, parameter in own.parameters.items() if name not in columns]
        all_rows.__signature__ = own.replace(parameters=fixtures)
        return all_rows

    return decorate
