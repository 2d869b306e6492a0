"""User interfaces for approvers: terminal, web page and Slack. Each subpackage needs its own extra."""
