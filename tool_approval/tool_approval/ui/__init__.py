"""User interfaces for approvers: terminal, web page and Slack. Each subpackage needs an extra of its own."""
