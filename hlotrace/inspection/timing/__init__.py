"""Where the time of a program's run went, from a profile."""
