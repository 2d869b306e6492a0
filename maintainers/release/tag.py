"""Check whether a tag may become a release: on the main branch, for this version, and signed by an allowed signer.

    TAG=v0.1.0 python -m maintainers.release.tag [--branch origin/main] [--fetch]

The name comes from the environment, as `TAG` or as GitHub's `GITHUB_REF_NAME`. On a command line, a shell or make would
interpret a name that an attacker chose.

The allowed signers are in `.github/allowed_signers` of the branch and not of the tag, because a tag on another commit
could have its own list.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from . import versions
from .environments import ROOT, CommandError, run

SIGNERS = '.github/allowed_signers'
"""File with the public keys of signers, in the format of `ssh-keygen -Y verify`, each with `namespaces="git"`."""


def problems(root: Path, tag: str, *, branch: str) -> list[str]:
    """Return what forbids publishing the tag, in sentences.

    Args:
        root: The repository, with the tag checked out.
        tag: The name of the tag.
        branch: The branch that names the signers and must contain the commit of the tag.
    """
    version = versions.version_of(root)
    if tag != f'v{version}':
        # Stop here: an attacker who pushes a tag chooses its name, and the commands below contain it.
        return [f'The packages are {version}, and the tag is {tag!r}.']
    found = versions.problems(root, is_release=True)
    try:
        commit = run('git', 'rev-parse', '--verify', f'refs/tags/{tag}^{{commit}}', cwd=root).strip()
    except CommandError:
        return [*found, f'There is no tag {tag!r}.']
    if run('git', 'rev-parse', 'HEAD', cwd=root).strip() != commit:
        found.append(f'{tag} is not checked out.')
    if run('git', 'status', '--porcelain', cwd=root).strip():
        found.append('The tree has changes that are not in the tag.')
    if not _succeeds(root, 'merge-base', '--is-ancestor', commit, branch):
        found.append(f'{tag} is not on {branch}.')
    return found + _signature_problems(root, tag, branch)


def _signature_problems(root: Path, tag: str, branch: str) -> list[str]:
    try:
        signers = run('git', 'show', f'{branch}:{SIGNERS}', cwd=root)
    except CommandError:
        return [f'{branch} has no {SIGNERS} with the allowed signers.']
    with tempfile.NamedTemporaryFile('w', suffix='.allowed_signers') as file:
        file.write(signers)
        file.flush()
        # Only SSH, whatever the machine's settings: the local keyring would verify an OpenPGP signature.
        settings = ('-c', 'gpg.format=ssh', '-c', f'gpg.ssh.allowedSignersFile={file.name}')
        if run('git', 'cat-file', '-t', f'refs/tags/{tag}', cwd=root).strip() != 'tag':
            return [f'{tag} is not an annotated tag, so it cannot be signed.']
        if '-----BEGIN SSH SIGNATURE-----' not in run('git', 'cat-file', 'tag', tag, cwd=root):
            return [f'{tag} has no SSH signature.']
        if not _succeeds(root, *settings, 'verify-tag', tag):
            return [f'{tag} is not signed by a key in {SIGNERS} of {branch}.']
    return []


def _succeeds(root: Path, *arguments: str) -> bool:
    try:
        run('git', *arguments, cwd=root)
    except CommandError:
        return False
    return True


def main(arguments: list[str]) -> None:
    """Check a tag."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--branch', default='origin/main')
    parser.add_argument('--fetch', action='store_true', help='fetch tags and branch as they are on the remote `origin`')
    options = parser.parse_args(arguments)
    tag = os.environ.get('TAG') or os.environ.get('GITHUB_REF_NAME', '')
    if options.fetch:
        # A checkout for a pushed tag may have the commit under the name of the tag, without the signed object.
        refs = ['+refs/tags/*:refs/tags/*', '+refs/heads/main:refs/remotes/origin/main']
        run('git', 'fetch', '--quiet', 'origin', *refs)
    if found := problems(ROOT, tag, branch=options.branch):
        sys.exit('\n'.join(found))
    print(f'{tag} may be released')


if __name__ == '__main__':
    try:
        main(sys.argv[1:])
    except CommandError as error:
        sys.exit(str(error))
