"""What is found out about models and machines: comparisons, their pages, lockstep, coverage."""
