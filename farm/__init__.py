"""Work that several processes share, on this machine or on many."""
