"""Parts around the core on a board without a processor: memory, serial link, clocks."""
