"""Guarded tools: files and the shell, judged before they run."""
