"""Commands that run what follows them: a rule about `uv run` is no rule about everything behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .programs import guarded_name
from .words import Word

_LISTED: Final = """
    npx, bunx, uvx, pipx run, uv run, uv tool run, poetry run, pdm run, pipenv run, hatch run, rye run, bundle exec,
    npm exec, npm x, pnpm exec, pnpm dlx, yarn exec, yarn dlx, bun x, conda run, mamba run, docker run, docker exec,
    podman run, podman exec, docker compose run, docker compose exec, kubectl exec, kubectl run, kubectl debug, go
    run, deno run, dotnet run, swift run, mise exec, mise x, asdf exec, rbenv exec, pyenv exec, nvm exec, direnv
    exec, op run, dotenv, dotenvx run, nox, nix run, nix develop, nix shell, guix shell, vagrant ssh, gcloud compute
    ssh, heroku run, fly ssh, flatpak run, snap run, jexec, lxc exec, machinectl shell, git submodule foreach
"""
_RUNNERS: Final = frozenset(tuple(name.split()) for name in _LISTED.split(','))


def runner_words(words: Sequence[Word]) -> int:
    """How many words of a command are the runner's own; 0 if it is none."""
    names = [guarded_name(words[0].value), *(word.value for word in words[1:3])]
    for count in (3, 2, 1):
        if tuple(names[:count]) in _RUNNERS and len(words) > count:
            return count
    return 0
