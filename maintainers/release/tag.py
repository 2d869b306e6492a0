"""Whether a tag may become a release: signed by somebody the main branch names, on that branch, for this version.

TAG=v0.1.0 python -m maintainers.release.tag [--branch origin/main] [--fetch]

The name comes from the environment, as `TAG` or as GitHub's `GITHUB_REF_NAME`: on a command line of a shell or of make,
a name that somebody else chose would be read as more than a name.

Who may sign stands in `.github/allowed_signers` of the branch, not of the tag: a tag on a commit of its own could
bring its own list.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from . import versions
from .environments import ROOT, CommandError, run

SIGNERS = '.github/allowed_signers'
"""The public keys of those who release, in the format of `ssh-keygen -Y verify`, each with `namespaces="git"`."""


def problems(root: Path, tag: str, *, branch: str) -> list[str]:
    """What forbids to publish the tag, in sentences; empty if nothing does.

    Args:
        root: The repository, with the tag checked out.
        tag: The name of the tag.
        branch: The branch that names the signers and has to contain the tag's commit.
    """
    version = versions.version_of(root)
    if tag != f'v{version}':
        # Nothing else is asked: whoever pushes a tag chooses its name, and it goes into commands below.
        return [f'The packages are {version}, and the tag is {tag!r}.']
    found = versions.problems(root, is_release=True)
    try:
        commit = run('git', 'rev-parse', '--verify', f'refs/tags/{tag}^{{commit}}', cwd=root).strip()
    except CommandError:
        return [*found, f'There is no tag {tag!r}.']
    if run('git', 'rev-parse', 'HEAD', cwd=root).strip() != commit:
        found.append(f'{tag} is not what is checked out.')
    if run('git', 'status', '--porcelain', cwd=root).strip():
        found.append('The tree has changes that the tag has not.')
    if not _succeeds(root, 'merge-base', '--is-ancestor', commit, branch):
        found.append(f'{tag} is not on {branch}.')
    return found + _signature_problems(root, tag, branch)


def _signature_problems(root: Path, tag: str, branch: str) -> list[str]:
    try:
        signers = run('git', 'show', f'{branch}:{SIGNERS}', cwd=root)
    except CommandError:
        return [f'{branch} has no {SIGNERS}: nobody may release.']
    with tempfile.NamedTemporaryFile('w', suffix='.allowed_signers') as file:
        file.write(signers)
        file.flush()
        # SSH alone, whatever the machine is set to: an OpenPGP signature would be verified by the local keyring.
        settings = ('-c', 'gpg.format=ssh', '-c', f'gpg.ssh.allowedSignersFile={file.name}')
        if run('git', 'cat-file', '-t', f'refs/tags/{tag}', cwd=root).strip() != 'tag':
            return [f'{tag} is no annotated tag, and cannot be signed.']
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
        # A checkout for a pushed tag may hold the commit under the tag's name, without the signed object.
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
