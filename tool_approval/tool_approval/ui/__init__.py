"""User interfaces for approvers: terminal, web page and Slack. Each package needs its own extra."""
