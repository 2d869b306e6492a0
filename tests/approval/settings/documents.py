"""A configuration that has every key."""

YAML = """\
mode: interactive
default: required
tools:
  send_notification: {approval: none}
  "delete_*": {approval: required, description: Deletes something.}
custom_tools:
  format_output:
auto_grant:
  vm: [net]
sandbox:
  paths:
    notes: {root: ./notes, mode: rw, suffixes: [.txt, .md], write_approval: true, read_approval: false}
    cache:
      root: ./cache
      mode: rw
      approval: {write: none, read: none}
  require_os_sandbox: true
  os_sandbox_fallback: refuse_tools
shell:
  default: {allowed: true, approval: true}
  rules:
    - {pattern: "git status", approval: false, match: [git status -s]}
    - {pattern: "rm", allowed: false}
    - {pattern: "pytest", approval: false, sandbox_paths: [notes]}
  network: false
  timeout_s: 30.5
audit: {unasked: false}
"""
