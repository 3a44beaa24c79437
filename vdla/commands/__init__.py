"""What the commands do, one family per file; ``cli.py`` only names their options."""
