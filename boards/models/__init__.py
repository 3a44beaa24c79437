"""Models of the chips on a board, as gateware: for Amaranth's simulator and for Verilator."""
