"""Commands that run what follows them: a rule about `uv run` is no rule about everything behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .programs import guarded_name
from .sub_commands import alternatives
from .words import Word

_LISTED: Final = """
    npx, bunx, uvx, pipx run, uv run, uv tool run, poetry run, pdm run, pipenv run, hatch run, rye run, bundle exec,
    npm exec, npm x, pnpm exec, pnpm dlx, yarn exec, yarn dlx, bun x, conda run, mamba run, docker run, docker exec,
    podman run, podman exec, docker compose run, docker compose exec, kubectl exec, kubectl run, kubectl debug, go
    run, deno run, dotnet run, swift run, mise exec, mise x, asdf exec, rbenv exec, pyenv exec, nvm exec, direnv
    exec, op run, dotenv, dotenvx run, nox, nix run, nix develop, nix shell, guix shell, vagrant ssh, gcloud compute
    ssh, heroku run, fly ssh, flatpak run, snap run, jexec, lxc exec, machinectl shell, git submodule foreach, git bisect
    run, git for-each-repo, npm init, pnpm init, yarn init, bun init, pnpm create, yarn create, bun create, npm explore,
    yarn node, pnpm node, tox exec, pixi run, devbox run, rustup run, dotnet exec, ip netns exec, ip vrf exec,
    docker-compose run, docker-compose exec, podman-compose run, podman-compose exec, nerdctl run, nerdctl exec, crictl exec,
    apptainer exec, singularity exec, toolbox run, distrobox enter, limactl shell, multipass exec, pct exec, ddev exec,
    devcontainer exec, mirrord exec, doppler run, infisical run, railway run, foreman run, sops exec-env, sops exec-file,
    aws-vault exec, chamber exec, envchain, stack exec, cabal exec, opam exec, lerna exec, jj bisect run, pueue add, rr
    record, uftrace record, gum spin, cargo watch, switcherooctl launch
"""
_RUNNERS: Final = frozenset(form for name in _LISTED.split(',') for form in alternatives(tuple(name.split())))


def runner_words(words: Sequence[Word]) -> int:
    """How many words of a command are the runner's own; 0 if it is none.

    Attack: `npm ex`, and `npm --silent exec`. Options in front may take the next word, or not: each word behind them is
    looked at.
    """
    program = guarded_name(words[0].value)
    texts = [word.value for word in words]
    starts = range(1, len(texts)) if texts[1:2] and texts[1].startswith('-') else (1,)
    for at in starts:
        for count in (2, 1):
            if (program, *texts[at : at + count]) in _RUNNERS and len(texts) > at + count:
                return at + count
    return 1 if (program,) in _RUNNERS and len(texts) > 1 else 0
