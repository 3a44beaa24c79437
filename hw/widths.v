// Operands as wide as their operation: Verilog would extend them silently, and lint complains.

(* techmap_celltype = "$add $sub $mul $and $or $xor" *)
module arithmetic (A, B, Y);
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter B_WIDTH = 1;
  parameter Y_WIDTH = 1;
  parameter _TECHMAP_CELLTYPE_ = "";
  input [A_WIDTH-1:0] A;
  input [B_WIDTH-1:0] B;
  output [Y_WIDTH-1:0] Y;
  localparam W = Y_WIDTH;
  wire _TECHMAP_FAIL_ = A_WIDTH == W && B_WIDTH == W;
  wire [W-1:0] a, b;
  generate
    if (A_SIGNED) assign a = $signed(A); else assign a = A;
    if (B_SIGNED) assign b = $signed(B); else assign b = B;
    if (_TECHMAP_CELLTYPE_ == "$add")
      \$add #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$sub")
      \$sub #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$mul")
      \$mul #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$and")
      \$and #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$or")
      \$or #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$xor")
      \$xor #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
  endgenerate
endmodule

(* techmap_celltype = "$lt $le $gt $ge $eq $ne" *)
module comparison (A, B, Y);
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter B_WIDTH = 1;
  parameter Y_WIDTH = 1;
  parameter _TECHMAP_CELLTYPE_ = "";
  input [A_WIDTH-1:0] A;
  input [B_WIDTH-1:0] B;
  output [Y_WIDTH-1:0] Y;
  localparam W = A_WIDTH > B_WIDTH ? A_WIDTH : B_WIDTH;
  wire _TECHMAP_FAIL_ = A_WIDTH == W && B_WIDTH == W;
  wire [W-1:0] a, b;
  generate
    if (A_SIGNED) assign a = $signed(A); else assign a = A;
    if (B_SIGNED) assign b = $signed(B); else assign b = B;
    if (_TECHMAP_CELLTYPE_ == "$lt")
      \$lt #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$le")
      \$le #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$gt")
      \$gt #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$ge")
      \$ge #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$eq")
      \$eq #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
    if (_TECHMAP_CELLTYPE_ == "$ne")
      \$ne #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(W), .B_WIDTH(W), .Y_WIDTH(Y_WIDTH))
        _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
  endgenerate
endmodule

(* techmap_celltype = "$logic_not" *)
module logic_not (A, Y);
  parameter A_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter Y_WIDTH = 1;
  input [A_WIDTH-1:0] A;
  output [Y_WIDTH-1:0] Y;
  wire _TECHMAP_FAIL_ = A_WIDTH == 1;
  \$not #(.A_SIGNED(0), .A_WIDTH(1), .Y_WIDTH(Y_WIDTH)) _TECHMAP_REPLACE_ (.A(|A), .Y(Y));
endmodule

(* techmap_celltype = "$shr $sshr" *)
module shift_right (A, B, Y);
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter B_WIDTH = 1;
  parameter Y_WIDTH = 1;
  parameter _TECHMAP_CELLTYPE_ = "";
  input [A_WIDTH-1:0] A;
  input [B_WIDTH-1:0] B;
  output [Y_WIDTH-1:0] Y;
  wire _TECHMAP_FAIL_ = Y_WIDTH >= A_WIDTH;
  wire [A_WIDTH-1:0] y;
  assign Y = y[Y_WIDTH-1:0];
  generate
    if (_TECHMAP_CELLTYPE_ == "$shr")
      \$shr #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(A_WIDTH), .B_WIDTH(B_WIDTH), .Y_WIDTH(A_WIDTH))
        shift (.A(A), .B(B), .Y(y));
    if (_TECHMAP_CELLTYPE_ == "$sshr")
      \$sshr #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(A_WIDTH), .B_WIDTH(B_WIDTH), .Y_WIDTH(A_WIDTH))
        shift (.A(A), .B(B), .Y(y));
  endgenerate
endmodule
