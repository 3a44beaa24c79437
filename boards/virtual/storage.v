// The words of an SDRAM: byte enables, and what lies at `at` a clock later.
module sdram_storage #(parameter ADDRESS_BITS = 24, parameter WORD_BITS = 16) (
    input clk,
    input [ADDRESS_BITS-1:0] at,
    input [WORD_BITS/8-1:0] enable,
    input [WORD_BITS-1:0] in,
    output reg [WORD_BITS-1:0] out
);
    reg [WORD_BITS-1:0] words [0:(1 << ADDRESS_BITS) - 1];
    integer n;
    always @(posedge clk) begin
        for (n = 0; n < WORD_BITS / 8; n = n + 1)
            if (enable[n]) words[at][8*n +: 8] <= in[8*n +: 8];
        out <= words[at];
    end
endmodule
