// The words of an SDRAM: byte enables, and what lies at `at` a clock later.
module sdram_storage #(parameter ADDRESS_BITS = 24) (
    input clk,
    input [ADDRESS_BITS-1:0] at,
    input [1:0] enable,
    input [15:0] in,
    output reg [15:0] out
);
    reg [15:0] words [0:(1 << ADDRESS_BITS) - 1];
    always @(posedge clk) begin
        if (enable[0]) words[at][7:0] <= in[7:0];
        if (enable[1]) words[at][15:8] <= in[15:8];
        out <= words[at];
    end
endmodule
