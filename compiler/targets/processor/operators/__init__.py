"""How a processor computes an operator: an expression and its schedule."""
