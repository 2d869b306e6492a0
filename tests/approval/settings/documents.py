"""One configuration, in both ways to write it."""

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
"""

TOML = """\
mode = "interactive"
default = "required"

[tools]
send_notification = { approval = "none" }
"delete_*" = { approval = "required", description = "Deletes something." }

[custom_tools.format_output]

[auto_grant]
vm = ["net"]

[sandbox]
require_os_sandbox = true
os_sandbox_fallback = "refuse_tools"

[sandbox.paths.notes]
root = "./notes"
mode = "rw"
suffixes = [".txt", ".md"]
write_approval = true
read_approval = false

[sandbox.paths.cache]
root = "./cache"
mode = "rw"
approval = { write = "none", read = "none" }

[shell]
network = false
timeout_s = 30.5
default = { allowed = true, approval = true }

[[shell.rules]]
pattern = "git status"
approval = false
match = ["git status -s"]

[[shell.rules]]
pattern = "rm"
allowed = false

[[shell.rules]]
pattern = "pytest"
approval = false
sandbox_paths = ["notes"]
"""
