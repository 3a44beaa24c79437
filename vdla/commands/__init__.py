"""Commands, one family per file; ``cli.py`` only names their options."""
