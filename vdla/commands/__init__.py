"""What the commands do, one family per file; ``vdla.cli`` only names their options."""
