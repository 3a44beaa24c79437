; From runtime.c by python -m vdla.runtime.c.generate
; ziglang 0.17.1, SHA-256 20d82dbcee8b28f5420ceddba7c42faa30625f4bbcf98f507e4e03cefce43ed2

%struct.vdla = type { [224 x i8], ptr, [10 x %struct.list], ptr, i64, i64, i32, i32, ptr, ptr, ptr, ptr, i64, i64, ptr, ptr, i64, i32, i32, i32, i64, i32, i32, i32, ptr, i32, [64 x i64], [384 x i8] }
%struct.list = type { ptr, i32 }
%struct.words = type { ptr, ptr }
%struct.vdla_code = type { ptr, i64, ptr, ptr, ptr, ptr }
%struct.vdla_function = type { ptr, ptr, ptr, i64 }
%struct.vdla_description = type { i32, i32, i32, i32, i32, i32 }
%struct.vdla_tensor = type { ptr, ptr, i64, i32, i32, [8 x i64], ptr, i32 }
%struct.vdla_board = type { ptr, ptr, ptr, ptr, ptr, ptr }

@.str = private unnamed_addr constant [17 x i8] c"0123456789abcdef\00"
@.str.1 = private unnamed_addr constant [6 x i8] c"step \00"
@.str.2 = private unnamed_addr constant [3 x i8] c" (\00"
@.str.3 = private unnamed_addr constant [2 x i8] c")\00"
@.str.4 = private unnamed_addr constant [12 x i8] c": expected \00"
@.str.5 = private unnamed_addr constant [9 x i8] c", found \00"
@crc32.NIBBLES = internal constant [16 x i32] [i32 0, i32 498536548, i32 997073096, i32 651767980, i32 1994146192, i32 1802195444, i32 1303535960, i32 1342533948, i32 -306674912, i32 -267414716, i32 -690576408, i32 -882789492, i32 -1687895376, i32 -2032938284, i32 -1609899400, i32 -1111625188]
@MAGIC = internal constant [8 x i8] c"VDLAMOD\0A"
@.str.6 = private unnamed_addr constant [7 x i8] c"module\00"
@.str.7 = private unnamed_addr constant [14 x i8] c"a vdla module\00"
@.str.8 = private unnamed_addr constant [12 x i8] c"other bytes\00"
@.str.9 = private unnamed_addr constant [25 x i8] c"module: expected format \00"
@.str.10 = private unnamed_addr constant [16 x i8] c", found format \00"
@.str.11 = private unnamed_addr constant [7 x i8] c"header\00"
@.str.12 = private unnamed_addr constant [6 x i8] c"table\00"
@.str.13 = private unnamed_addr constant [18 x i8] c"at least 64 bytes\00"
@type_bytes.BYTES = internal constant [23 x i8] c"\01\01\01\02\02\04\04\08\08\02\04\08\02\01\01\01\01\01\01\01\01\01\01"
@.str.14 = private unnamed_addr constant [50 x i8] c"an image of this machine that holds the constants\00"
@.str.15 = private unnamed_addr constant [7 x i8] c"device\00"
@.str.16 = private unnamed_addr constant [39 x i8] c"a board for the accelerator's programs\00"
@.str.17 = private unnamed_addr constant [5 x i8] c"none\00"
@.str.18 = private unnamed_addr constant [63 x i8] c"memory: expected some, aligned to 64 bytes, found less or none\00"
@.str.19 = private unnamed_addr constant [6 x i8] c"input\00"
@.str.20 = private unnamed_addr constant [30 x i8] c"a number below that of inputs\00"
@.str.21 = private unnamed_addr constant [7 x i8] c"output\00"
@.str.22 = private unnamed_addr constant [31 x i8] c"a number below that of outputs\00"
@.str.23 = private unnamed_addr constant [6 x i8] c"board\00"
@.str.24 = private unnamed_addr constant [30 x i8] c"memory for the module's image\00"
@.str.25 = private unnamed_addr constant [13 x i8] c"less or none\00"
@.str.26 = private unnamed_addr constant [28 x i8] c"a program that ends in time\00"
@.str.27 = private unnamed_addr constant [37 x i8] c"it still running; the core was reset\00"
@.str.28 = private unnamed_addr constant [9 x i8] c"counters\00"
@.str.29 = private unnamed_addr constant [27 x i8] c"those of a board's engines\00"
@.str.30 = private unnamed_addr constant [32 x i8] c"module: expected more than its \00"
@.str.31 = private unnamed_addr constant [38 x i8] c" bytes, found an end: it is truncated\00"
@.str.32 = private unnamed_addr constant [21 x i8] c": expected checksum \00"
@ENTRY_WORDS = internal constant [9 x i32] [i32 7, i32 1, i32 2, i32 6, i32 8, i32 1, i32 1, i32 4, i32 4]
@.str.33 = private unnamed_addr constant [46 x i8] c"lists that end within it, as long as they say\00"
@.str.34 = private unnamed_addr constant [26 x i8] c"texts that end with zeros\00"
@.str.35 = private unnamed_addr constant [7 x i8] c"others\00"
@.str.36 = private unnamed_addr constant [10 x i8] c"a section\00"
@.str.37 = private unnamed_addr constant [7 x i8] c"an end\00"
@.str.38 = private unnamed_addr constant [11 x i8] c"more bytes\00"
@.str.39 = private unnamed_addr constant [31 x i8] c"constants as its first section\00"
@.str.40 = private unnamed_addr constant [5 x i8] c"code\00"
@.str.41 = private unnamed_addr constant [38 x i8] c"as many functions as the module names\00"
@.str.42 = private unnamed_addr constant [126 x i8] c"code: expected code for this processor, found code that needs instructions that it lacks; package for an older one (--target)\00"
@.str.43 = private unnamed_addr constant [11 x i8] c"a function\00"
@.str.44 = private unnamed_addr constant [13 x i8] c"a known name\00"
@.str.45 = private unnamed_addr constant [23 x i8] c"the module's functions\00"
@.str.46 = private unnamed_addr constant [9 x i8] c"a tensor\00"
@.str.47 = private unnamed_addr constant [37 x i8] c"an offset and bytes within the image\00"
@.str.48 = private unnamed_addr constant [13 x i8] c"a known type\00"
@.str.49 = private unnamed_addr constant [12 x i8] c"known sizes\00"
@.str.50 = private unnamed_addr constant [24 x i8] c"a shape of this machine\00"
@.str.51 = private unnamed_addr constant [22 x i8] c"bytes as by its shape\00"
@.str.52 = private unnamed_addr constant [9 x i8] c"an input\00"
@.str.53 = private unnamed_addr constant [20 x i8] c"integers as indices\00"
@.str.54 = private unnamed_addr constant [19 x i8] c"an input or output\00"
@.str.55 = private unnamed_addr constant [15 x i8] c"a known tensor\00"
@.str.56 = private unnamed_addr constant [15 x i8] c"at most 8 axes\00"
@.str.57 = private unnamed_addr constant [10 x i8] c"an output\00"
@.str.58 = private unnamed_addr constant [13 x i8] c"a known kind\00"
@.str.59 = private unnamed_addr constant [24 x i8] c"a condition of one bool\00"
@.str.60 = private unnamed_addr constant [5 x i8] c"rows\00"
@.str.61 = private unnamed_addr constant [30 x i8] c"a number of rows of one int64\00"
@.str.62 = private unnamed_addr constant [22 x i8] c"sizes of all its rows\00"
@.str.63 = private unnamed_addr constant [8 x i8] c"a range\00"
@.str.64 = private unnamed_addr constant [19 x i8] c"bytes of the image\00"
@.str.65 = private unnamed_addr constant [7 x i8] c"a step\00"
@.str.66 = private unnamed_addr constant [14 x i8] c"known tensors\00"
@.str.67 = private unnamed_addr constant [8 x i8] c"another\00"
@.str.68 = private unnamed_addr constant [11 x i8] c"one tensor\00"
@.str.69 = private unnamed_addr constant [40 x i8] c"steps of a processor or the accelerator\00"
@.str.70 = private unnamed_addr constant [34 x i8] c"one for a GPU; compile without it\00"
@.str.71 = private unnamed_addr constant [20 x i8] c"one for onnxruntime\00"
@.str.72 = private unnamed_addr constant [32 x i8] c"one of another package's target\00"
@.str.73 = private unnamed_addr constant [25 x i8] c"a function of the module\00"
@.str.74 = private unnamed_addr constant [32 x i8] c"tensors of its function's bytes\00"
@.str.75 = private unnamed_addr constant [24 x i8] c"a program of the module\00"
@check_program.MAGIC = internal constant [8 x i8] c"VDLAPROG"
@.str.76 = private unnamed_addr constant [35 x i8] c"one that is cut or another version\00"
@.str.77 = private unnamed_addr constant [27 x i8] c"a program within the image\00"
@.str.78 = private unnamed_addr constant [14 x i8] c"one beyond it\00"
@.str.79 = private unnamed_addr constant [34 x i8] c"a program for the module's config\00"
@.str.80 = private unnamed_addr constant [13 x i8] c"known ranges\00"
@.str.81 = private unnamed_addr constant [31 x i8] c"two tensors, and a way to copy\00"
@.str.82 = private unnamed_addr constant [33 x i8] c"tensors of as many bytes to copy\00"
@.str.83 = private unnamed_addr constant [21 x i8] c"a step to go on with\00"
@.str.84 = private unnamed_addr constant [27 x i8] c"a jump to a step behind it\00"
@.str.85 = private unnamed_addr constant [14 x i8] c"one before it\00"
@.str.86 = private unnamed_addr constant [25 x i8] c"turns from a step before\00"
@.str.87 = private unnamed_addr constant [24 x i8] c"a frame of this machine\00"
@.str.88 = private unnamed_addr constant [13 x i8] c"a larger one\00"
@.str.89 = private unnamed_addr constant [25 x i8] c"an image of this machine\00"
@.str.90 = private unnamed_addr constant [18 x i8] c"memory: expected \00"
@.str.91 = private unnamed_addr constant [15 x i8] c" bytes, found \00"
@.str.92 = private unnamed_addr constant [11 x i8] c"a core, ID\00"
@.str.93 = private unnamed_addr constant [13 x i8] c"register map\00"
@.str.94 = private unnamed_addr constant [31 x i8] c"a bitstream of instruction set\00"
@.str.95 = private unnamed_addr constant [23 x i8] c"a bitstream for config\00"
@.str.96 = private unnamed_addr constant [17 x i8] c"board: expected \00"
@.str.97 = private unnamed_addr constant [2 x i8] c" \00"
@.str.98 = private unnamed_addr constant [90 x i8] c"board: expected the core to stop, found a transfer that doesn't end; reload the bitstream\00"
@check_end.FAULTS = internal constant [6 x ptr] [ptr @.str.99, ptr @.str.100, ptr @.str.101, ptr @.str.102, ptr @.str.103, ptr @.str.104]
@.str.99 = private unnamed_addr constant [5 x i8] c"NONE\00"
@.str.100 = private unnamed_addr constant [15 x i8] c"PROGRAM_CONFIG\00"
@.str.101 = private unnamed_addr constant [8 x i8] c"ILLEGAL\00"
@.str.102 = private unnamed_addr constant [8 x i8] c"ADDRESS\00"
@.str.103 = private unnamed_addr constant [4 x i8] c"BUS\00"
@.str.104 = private unnamed_addr constant [12 x i8] c"PROGRAM_ISA\00"
@.str.105 = private unnamed_addr constant [20 x i8] c"a program that ends\00"
@.str.106 = private unnamed_addr constant [7 x i8] c"fault \00"
@.str.107 = private unnamed_addr constant [29 x i8] c" at the instruction at byte \00"
@.str.108 = private unnamed_addr constant [5 x i8] c"DONE\00"
@.str.109 = private unnamed_addr constant [43 x i8] c"neither DONE nor FAULT: the core was reset\00"
@.str.110 = private unnamed_addr constant [38 x i8] c"board: expected an answer, found none\00"
@.str.111 = private unnamed_addr constant [7 x i8] c"input \00"
@.str.112 = private unnamed_addr constant [26 x i8] c": expected indices from -\00"
@.str.113 = private unnamed_addr constant [5 x i8] c" to \00"
@.str.114 = private unnamed_addr constant [16 x i8] c", found another\00"
@.str.115 = private unnamed_addr constant [31 x i8] c"an end after at most its turns\00"
@.str.116 = private unnamed_addr constant [52 x i8] c"none; compile with more, --turns, if it is to go on\00"
@.str.117 = private unnamed_addr constant [38 x i8] c"at most 1000 calls inside one another\00"
@.str.118 = private unnamed_addr constant [5 x i8] c"more\00"
@.str.119 = private unnamed_addr constant [32 x i8] c"turns as many as there are rows\00"

define void @begin_error(ptr %net, ptr %words) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %words.addr = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  store ptr %words, ptr %words.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %error = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 0
  %arrayidx = getelementptr inbounds [224 x i8], ptr %error, i64 0, i64 0
  store i8 0, ptr %arrayidx, align 8
  %1 = load ptr, ptr %net.addr, align 8
  %error1 = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 0
  %arraydecay = getelementptr inbounds [224 x i8], ptr %error1, i64 0, i64 0
  %2 = load ptr, ptr %words.addr, align 8
  %at = getelementptr inbounds %struct.words, ptr %2, i32 0, i32 0
  store ptr %arraydecay, ptr %at, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %error2 = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 0
  %arraydecay3 = getelementptr inbounds [224 x i8], ptr %error2, i64 0, i64 0
  %add.ptr = getelementptr inbounds i8, ptr %arraydecay3, i64 224
  %add.ptr4 = getelementptr inbounds i8, ptr %add.ptr, i64 -1
  %4 = load ptr, ptr %words.addr, align 8
  %end = getelementptr inbounds %struct.words, ptr %4, i32 0, i32 1
  store ptr %add.ptr4, ptr %end, align 8
  ret void
}

define void @put(ptr %words, ptr %text) noinline nounwind {
entry:
  %words.addr = alloca ptr, align 8
  %text.addr = alloca ptr, align 8
  store ptr %words, ptr %words.addr, align 8
  store ptr %text, ptr %text.addr, align 8
  br label %while.cond

while.cond:
  %0 = load ptr, ptr %text.addr, align 8
  %1 = load i8, ptr %0, align 1
  %conv = zext i8 %1 to i32
  %tobool = icmp ne i32 %conv, 0
  br i1 %tobool, label %land.rhs, label %land.end

land.rhs:
  %2 = load ptr, ptr %words.addr, align 8
  %at = getelementptr inbounds %struct.words, ptr %2, i32 0, i32 0
  %3 = load ptr, ptr %at, align 8
  %4 = load ptr, ptr %words.addr, align 8
  %end = getelementptr inbounds %struct.words, ptr %4, i32 0, i32 1
  %5 = load ptr, ptr %end, align 8
  %cmp = icmp ult ptr %3, %5
  br label %land.end

land.end:
  %6 = phi i1 [ false, %while.cond ], [ %cmp, %land.rhs ]
  br i1 %6, label %while.body, label %while.end

while.body:
  %7 = load ptr, ptr %text.addr, align 8
  %incdec.ptr = getelementptr inbounds i8, ptr %7, i32 1
  store ptr %incdec.ptr, ptr %text.addr, align 8
  %8 = load i8, ptr %7, align 1
  %9 = load ptr, ptr %words.addr, align 8
  %at2 = getelementptr inbounds %struct.words, ptr %9, i32 0, i32 0
  %10 = load ptr, ptr %at2, align 8
  %incdec.ptr3 = getelementptr inbounds i8, ptr %10, i32 1
  store ptr %incdec.ptr3, ptr %at2, align 8
  store i8 %8, ptr %10, align 1
  br label %while.cond

while.end:
  %11 = load ptr, ptr %words.addr, align 8
  %at4 = getelementptr inbounds %struct.words, ptr %11, i32 0, i32 0
  %12 = load ptr, ptr %at4, align 8
  store i8 0, ptr %12, align 1
  ret void
}

define void @put_number(ptr %words, i64 %number) noinline nounwind {
entry:
  %words.addr = alloca ptr, align 8
  %number.addr = alloca i64, align 8
  %digits = alloca [24 x i8], align 16
  %at = alloca ptr, align 8
  store ptr %words, ptr %words.addr, align 8
  store i64 %number, ptr %number.addr, align 8
  %arraydecay = getelementptr inbounds [24 x i8], ptr %digits, i64 0, i64 0
  %add.ptr = getelementptr inbounds i8, ptr %arraydecay, i64 24
  %add.ptr1 = getelementptr inbounds i8, ptr %add.ptr, i64 -1
  store ptr %add.ptr1, ptr %at, align 8
  %0 = load ptr, ptr %at, align 8
  store i8 0, ptr %0, align 1
  br label %do.body

do.body:
  %1 = load i64, ptr %number.addr, align 8
  %rem = urem i64 %1, 10
  %add = add i64 48, %rem
  %conv = trunc i64 %add to i8
  %2 = load ptr, ptr %at, align 8
  %incdec.ptr = getelementptr inbounds i8, ptr %2, i32 -1
  store ptr %incdec.ptr, ptr %at, align 8
  store i8 %conv, ptr %incdec.ptr, align 1
  %3 = load i64, ptr %number.addr, align 8
  %div = udiv i64 %3, 10
  store i64 %div, ptr %number.addr, align 8
  br label %do.cond

do.cond:
  %4 = load i64, ptr %number.addr, align 8
  %tobool = icmp ne i64 %4, 0
  br i1 %tobool, label %do.body, label %do.end

do.end:
  %5 = load ptr, ptr %words.addr, align 8
  %6 = load ptr, ptr %at, align 8
  call void @put(ptr %5, ptr %6)
  ret void
}

define void @put_hex(ptr %words, i32 %number) noinline nounwind {
entry:
  %words.addr = alloca ptr, align 8
  %number.addr = alloca i32, align 4
  %digits = alloca [9 x i8], align 1
  %n = alloca i32, align 4
  store ptr %words, ptr %words.addr, align 8
  store i32 %number, ptr %number.addr, align 4
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %0 = load i32, ptr %n, align 4
  %cmp = icmp slt i32 %0, 8
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %1 = load i32, ptr %number.addr, align 4
  %2 = load i32, ptr %n, align 4
  %mul = mul nsw i32 4, %2
  %sub = sub nsw i32 28, %mul
  %shr = lshr i32 %1, %sub
  %and = and i32 %shr, 15
  %idxprom = zext i32 %and to i64
  %arrayidx = getelementptr inbounds [17 x i8], ptr @.str, i64 0, i64 %idxprom
  %3 = load i8, ptr %arrayidx, align 1
  %4 = load i32, ptr %n, align 4
  %idxprom1 = sext i32 %4 to i64
  %arrayidx2 = getelementptr inbounds [9 x i8], ptr %digits, i64 0, i64 %idxprom1
  store i8 %3, ptr %arrayidx2, align 1
  br label %for.inc

for.inc:
  %5 = load i32, ptr %n, align 4
  %inc = add nsw i32 %5, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  %arrayidx3 = getelementptr inbounds [9 x i8], ptr %digits, i64 0, i64 8
  store i8 0, ptr %arrayidx3, align 1
  %6 = load ptr, ptr %words.addr, align 8
  %arraydecay = getelementptr inbounds [9 x i8], ptr %digits, i64 0, i64 0
  call void @put(ptr %6, ptr %arraydecay)
  ret void
}

define i32 @fail(ptr %net, i32 %status, ptr %where, ptr %expected, i64 %number) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %status.addr = alloca i32, align 4
  %where.addr = alloca ptr, align 8
  %expected.addr = alloca ptr, align 8
  %number.addr = alloca i64, align 8
  %words = alloca %struct.words, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %status, ptr %status.addr, align 4
  store ptr %where, ptr %where.addr, align 8
  store ptr %expected, ptr %expected.addr, align 8
  store i64 %number, ptr %number.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %where.addr, align 8
  %2 = load ptr, ptr %expected.addr, align 8
  call void @put_place(ptr %0, ptr %words, ptr %1, ptr %2)
  %3 = load i64, ptr %number.addr, align 8
  call void @put_number(ptr %words, i64 %3)
  %4 = load i32, ptr %status.addr, align 4
  ret i32 %4
}

define internal void @put_place(ptr %net, ptr %words, ptr %where, ptr %expected) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %words.addr = alloca ptr, align 8
  %where.addr = alloca ptr, align 8
  %expected.addr = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  store ptr %words, ptr %words.addr, align 8
  store ptr %where, ptr %where.addr, align 8
  store ptr %expected, ptr %expected.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %words.addr, align 8
  call void @begin_error(ptr %0, ptr %1)
  %2 = load ptr, ptr %words.addr, align 8
  %3 = load ptr, ptr %where.addr, align 8
  call void @put(ptr %2, ptr %3)
  %4 = load ptr, ptr %words.addr, align 8
  call void @put(ptr %4, ptr @.str.4)
  %5 = load ptr, ptr %words.addr, align 8
  %6 = load ptr, ptr %expected.addr, align 8
  call void @put(ptr %5, ptr %6)
  %7 = load ptr, ptr %words.addr, align 8
  call void @put(ptr %7, ptr @.str.5)
  ret void
}

define i32 @fail_with(ptr %net, i32 %status, ptr %where, ptr %expected, ptr %found) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %status.addr = alloca i32, align 4
  %where.addr = alloca ptr, align 8
  %expected.addr = alloca ptr, align 8
  %found.addr = alloca ptr, align 8
  %words = alloca %struct.words, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %status, ptr %status.addr, align 4
  store ptr %where, ptr %where.addr, align 8
  store ptr %expected, ptr %expected.addr, align 8
  store ptr %found, ptr %found.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %where.addr, align 8
  %2 = load ptr, ptr %expected.addr, align 8
  call void @put_place(ptr %0, ptr %words, ptr %1, ptr %2)
  %3 = load ptr, ptr %found.addr, align 8
  call void @put(ptr %words, ptr %3)
  %4 = load i32, ptr %status.addr, align 4
  ret i32 %4
}

define i32 @fail_at_step(ptr %net, i32 %status, i32 %step, ptr %expected, ptr %found) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %status.addr = alloca i32, align 4
  %step.addr = alloca i32, align 4
  %expected.addr = alloca ptr, align 8
  %found.addr = alloca ptr, align 8
  %words = alloca %struct.words, align 8
  %name = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %status, ptr %status.addr, align 4
  store i32 %step, ptr %step.addr, align 4
  store ptr %expected, ptr %expected.addr, align 8
  store ptr %found, ptr %found.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %0, ptr %words)
  call void @put(ptr %words, ptr @.str.1)
  %1 = load i32, ptr %step.addr, align 4
  %conv = zext i32 %1 to i64
  call void @put_number(ptr %words, i64 %conv)
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_word(ptr %3, i32 %4, i32 1)
  %call1 = call ptr @text(ptr %2, i32 %call)
  store ptr %call1, ptr %name, align 8
  %5 = load ptr, ptr %name, align 8
  %6 = load i8, ptr %5, align 1
  %tobool = icmp ne i8 %6, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  call void @put(ptr %words, ptr @.str.2)
  %7 = load ptr, ptr %name, align 8
  call void @put(ptr %words, ptr %7)
  call void @put(ptr %words, ptr @.str.3)
  br label %if.end

if.end:
  call void @put(ptr %words, ptr @.str.4)
  %8 = load ptr, ptr %expected.addr, align 8
  call void @put(ptr %words, ptr %8)
  call void @put(ptr %words, ptr @.str.5)
  %9 = load ptr, ptr %found.addr, align 8
  call void @put(ptr %words, ptr %9)
  %10 = load i32, ptr %status.addr, align 4
  ret i32 %10
}

define internal ptr @text(ptr %net, i32 %place) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %place.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %place, ptr %place.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 9
  %first = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 0
  %1 = load ptr, ptr %first, align 8
  %2 = load i32, ptr %place.addr, align 4
  %idx.ext = zext i32 %2 to i64
  %add.ptr = getelementptr inbounds i8, ptr %1, i64 %idx.ext
  ret ptr %add.ptr
}

define internal i32 @step_word(ptr %net, i32 %step, i32 %which) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %which.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  store i32 %which, ptr %which.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call ptr @entry(ptr %0, i32 4, i32 %1, i32 8)
  %2 = load i32, ptr %which.addr, align 4
  %mul = mul nsw i32 4, %2
  %idx.ext = sext i32 %mul to i64
  %add.ptr = getelementptr inbounds i8, ptr %call, i64 %idx.ext
  %call1 = call i32 @word_at(ptr %add.ptr)
  ret i32 %call1
}

define i32 @crc32(ptr %data, i64 %bytes) noinline nounwind {
entry:
  %data.addr = alloca ptr, align 8
  %bytes.addr = alloca i64, align 8
  %crc = alloca i32, align 4
  %n = alloca i64, align 8
  store ptr %data, ptr %data.addr, align 8
  store i64 %bytes, ptr %bytes.addr, align 8
  store i32 -1, ptr %crc, align 4
  store i64 0, ptr %n, align 8
  br label %for.cond

for.cond:
  %0 = load i64, ptr %n, align 8
  %1 = load i64, ptr %bytes.addr, align 8
  %cmp = icmp ult i64 %0, %1
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %2 = load ptr, ptr %data.addr, align 8
  %3 = load i64, ptr %n, align 8
  %arrayidx = getelementptr inbounds i8, ptr %2, i64 %3
  %4 = load i8, ptr %arrayidx, align 1
  %conv = zext i8 %4 to i32
  %5 = load i32, ptr %crc, align 4
  %xor = xor i32 %5, %conv
  store i32 %xor, ptr %crc, align 4
  %6 = load i32, ptr %crc, align 4
  %shr = lshr i32 %6, 4
  %7 = load i32, ptr %crc, align 4
  %and = and i32 %7, 15
  %idxprom = zext i32 %and to i64
  %arrayidx1 = getelementptr inbounds [16 x i32], ptr @crc32.NIBBLES, i64 0, i64 %idxprom
  %8 = load i32, ptr %arrayidx1, align 4
  %xor2 = xor i32 %shr, %8
  store i32 %xor2, ptr %crc, align 4
  %9 = load i32, ptr %crc, align 4
  %shr3 = lshr i32 %9, 4
  %10 = load i32, ptr %crc, align 4
  %and4 = and i32 %10, 15
  %idxprom5 = zext i32 %and4 to i64
  %arrayidx6 = getelementptr inbounds [16 x i32], ptr @crc32.NIBBLES, i64 0, i64 %idxprom5
  %11 = load i32, ptr %arrayidx6, align 4
  %xor7 = xor i32 %shr3, %11
  store i32 %xor7, ptr %crc, align 4
  br label %for.inc

for.inc:
  %12 = load i64, ptr %n, align 8
  %inc = add i64 %12, 1
  store i64 %inc, ptr %n, align 8
  br label %for.cond

for.end:
  %13 = load i32, ptr %crc, align 4
  %not = xor i32 %13, -1
  ret i32 %not
}

define ptr @section_data(ptr %net, i32 %section, ptr %bytes) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %section.addr = alloca i32, align 4
  %bytes.addr = alloca ptr, align 8
  %data = alloca ptr, align 8
  %n = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %section, ptr %section.addr, align 4
  store ptr %bytes, ptr %bytes.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %sections = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 3
  %1 = load ptr, ptr %sections, align 8
  store ptr %1, ptr %data, align 8
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %n, align 4
  %call = call ptr @entry(ptr %2, i32 8, i32 %3, i32 4)
  %add.ptr = getelementptr inbounds i8, ptr %call, i64 4
  %call1 = call i64 @size_at(ptr %add.ptr)
  %4 = load ptr, ptr %bytes.addr, align 8
  store i64 %call1, ptr %4, align 8
  %5 = load i32, ptr %n, align 4
  %6 = load i32, ptr %section.addr, align 4
  %cmp = icmp eq i32 %5, %6
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %7 = load ptr, ptr %data, align 8
  ret ptr %7

if.end:
  %8 = load ptr, ptr %bytes.addr, align 8
  %9 = load i64, ptr %8, align 8
  %10 = load ptr, ptr %data, align 8
  %add.ptr2 = getelementptr inbounds i8, ptr %10, i64 %9
  store ptr %add.ptr2, ptr %data, align 8
  br label %for.inc

for.inc:
  %11 = load i32, ptr %n, align 4
  %inc = add i32 %11, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond
}

define internal i64 @size_at(ptr %at) nounwind {
entry:
  %at.addr = alloca ptr, align 8
  %low = alloca i32, align 4
  %high = alloca i32, align 4
  store ptr %at, ptr %at.addr, align 8
  %0 = load ptr, ptr %at.addr, align 8
  %call = call i32 @word_at(ptr %0)
  store i32 %call, ptr %low, align 4
  %1 = load ptr, ptr %at.addr, align 8
  %add.ptr = getelementptr inbounds i8, ptr %1, i64 4
  %call1 = call i32 @word_at(ptr %add.ptr)
  store i32 %call1, ptr %high, align 4
  %2 = load i32, ptr %high, align 4
  %conv = zext i32 %2 to i64
  %shl = shl i64 %conv, 32
  %3 = load i32, ptr %low, align 4
  %conv2 = zext i32 %3 to i64
  %or = or i64 %shl, %conv2
  ret i64 %or
}

define internal ptr @entry(ptr %net, i32 %list, i32 %number, i32 %words) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %list.addr = alloca i32, align 4
  %number.addr = alloca i32, align 4
  %words.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %list, ptr %list.addr, align 4
  store i32 %number, ptr %number.addr, align 4
  store i32 %words, ptr %words.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 2
  %1 = load i32, ptr %list.addr, align 4
  %idxprom = sext i32 %1 to i64
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 %idxprom
  %first = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 0
  %2 = load ptr, ptr %first, align 8
  %3 = load i32, ptr %words.addr, align 4
  %conv = sext i32 %3 to i64
  %mul = mul i64 4, %conv
  %4 = load i32, ptr %number.addr, align 4
  %conv1 = zext i32 %4 to i64
  %mul2 = mul i64 %mul, %conv1
  %add.ptr = getelementptr inbounds i8, ptr %2, i64 %mul2
  ret ptr %add.ptr
}

define i32 @read_module(ptr %net, i64 %bytes) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %bytes.addr = alloca i64, align 8
  %file = alloca ptr, align 8
  %n = alloca i64, align 8
  %words = alloca %struct.words, align 8
  %header = alloca i32, align 4
  %found = alloca i32, align 4
  %table = alloca ptr, align 8
  %left = alloca i64, align 8
  %length = alloca i64, align 8
  %status = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i64 %bytes, ptr %bytes.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %bytes1 = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 1
  %1 = load ptr, ptr %bytes1, align 8
  store ptr %1, ptr %file, align 8
  store i64 0, ptr %n, align 8
  br label %for.cond

for.cond:
  %2 = load i64, ptr %n, align 8
  %cmp = icmp ult i64 %2, 8
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %3 = load i64, ptr %n, align 8
  %4 = load i64, ptr %bytes.addr, align 8
  %cmp2 = icmp uge i64 %3, %4
  br i1 %cmp2, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %5 = load ptr, ptr %file, align 8
  %6 = load i64, ptr %n, align 8
  %arrayidx = getelementptr inbounds i8, ptr %5, i64 %6
  %7 = load i8, ptr %arrayidx, align 1
  %conv = zext i8 %7 to i32
  %8 = load i64, ptr %n, align 8
  %arrayidx3 = getelementptr inbounds [8 x i8], ptr @MAGIC, i64 0, i64 %8
  %9 = load i8, ptr %arrayidx3, align 1
  %conv4 = zext i8 %9 to i32
  %cmp5 = icmp ne i32 %conv, %conv4
  br i1 %cmp5, label %if.then, label %if.end

if.then:
  %10 = load ptr, ptr %net.addr, align 8
  %call = call i32 @fail_with(ptr %10, i32 1, ptr @.str.6, ptr @.str.7, ptr @.str.8)
  store i32 %call, ptr %retval, align 4
  br label %return

if.end:
  br label %for.inc

for.inc:
  %11 = load i64, ptr %n, align 8
  %inc = add i64 %11, 1
  store i64 %inc, ptr %n, align 8
  br label %for.cond

for.end:
  %12 = load i64, ptr %bytes.addr, align 8
  %cmp7 = icmp ult i64 %12, 20
  br i1 %cmp7, label %if.then9, label %if.end11

if.then9:
  %13 = load ptr, ptr %net.addr, align 8
  %14 = load i64, ptr %bytes.addr, align 8
  %call10 = call i32 @truncated(ptr %13, i64 %14)
  store i32 %call10, ptr %retval, align 4
  br label %return

if.end11:
  %15 = load ptr, ptr %file, align 8
  %add.ptr = getelementptr inbounds i8, ptr %15, i64 8
  %call12 = call i32 @word_at(ptr %add.ptr)
  %cmp13 = icmp ne i32 %call12, 8
  br i1 %cmp13, label %if.then15, label %if.end19

if.then15:
  %16 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %16, ptr %words)
  call void @put(ptr %words, ptr @.str.9)
  call void @put_number(ptr %words, i64 8)
  call void @put(ptr %words, ptr @.str.10)
  %17 = load ptr, ptr %file, align 8
  %add.ptr16 = getelementptr inbounds i8, ptr %17, i64 8
  %call17 = call i32 @word_at(ptr %add.ptr16)
  %conv18 = zext i32 %call17 to i64
  call void @put_number(ptr %words, i64 %conv18)
  store i32 1, ptr %retval, align 4
  br label %return

if.end19:
  %18 = load ptr, ptr %file, align 8
  %add.ptr20 = getelementptr inbounds i8, ptr %18, i64 12
  %call21 = call i32 @word_at(ptr %add.ptr20)
  store i32 %call21, ptr %header, align 4
  %19 = load i32, ptr %header, align 4
  %conv22 = zext i32 %19 to i64
  %20 = load i64, ptr %bytes.addr, align 8
  %sub = sub i64 %20, 20
  %cmp23 = icmp ugt i64 %conv22, %sub
  br i1 %cmp23, label %if.then25, label %if.end27

if.then25:
  %21 = load ptr, ptr %net.addr, align 8
  %22 = load i64, ptr %bytes.addr, align 8
  %call26 = call i32 @truncated(ptr %21, i64 %22)
  store i32 %call26, ptr %retval, align 4
  br label %return

if.end27:
  %23 = load ptr, ptr %file, align 8
  %add.ptr28 = getelementptr inbounds i8, ptr %23, i64 20
  %24 = load i32, ptr %header, align 4
  %conv29 = zext i32 %24 to i64
  %call30 = call i32 @crc32(ptr %add.ptr28, i64 %conv29)
  store i32 %call30, ptr %found, align 4
  %25 = load i32, ptr %found, align 4
  %26 = load ptr, ptr %file, align 8
  %add.ptr31 = getelementptr inbounds i8, ptr %26, i64 16
  %call32 = call i32 @word_at(ptr %add.ptr31)
  %cmp33 = icmp ne i32 %25, %call32
  br i1 %cmp33, label %if.then35, label %if.end39

if.then35:
  %27 = load ptr, ptr %net.addr, align 8
  %28 = load ptr, ptr %file, align 8
  %add.ptr36 = getelementptr inbounds i8, ptr %28, i64 16
  %call37 = call i32 @word_at(ptr %add.ptr36)
  %29 = load i32, ptr %found, align 4
  %call38 = call i32 @damaged(ptr %27, ptr @.str.11, i32 %call37, i32 %29)
  store i32 %call38, ptr %retval, align 4
  br label %return

if.end39:
  %30 = load ptr, ptr %file, align 8
  %add.ptr40 = getelementptr inbounds i8, ptr %30, i64 20
  %31 = load i32, ptr %header, align 4
  %idx.ext = zext i32 %31 to i64
  %add.ptr41 = getelementptr inbounds i8, ptr %add.ptr40, i64 %idx.ext
  store ptr %add.ptr41, ptr %table, align 8
  %32 = load i64, ptr %bytes.addr, align 8
  %sub42 = sub i64 %32, 20
  %33 = load i32, ptr %header, align 4
  %conv43 = zext i32 %33 to i64
  %sub44 = sub i64 %sub42, %conv43
  store i64 %sub44, ptr %left, align 8
  %34 = load i64, ptr %left, align 8
  %cmp45 = icmp ult i64 %34, 64
  br i1 %cmp45, label %if.then52, label %lor.lhs.false47

lor.lhs.false47:
  %35 = load ptr, ptr %table, align 8
  %call48 = call i32 @word_at(ptr %35)
  %conv49 = zext i32 %call48 to i64
  %36 = load i64, ptr %left, align 8
  %cmp50 = icmp ugt i64 %conv49, %36
  br i1 %cmp50, label %if.then52, label %if.end54

if.then52:
  %37 = load ptr, ptr %net.addr, align 8
  %38 = load i64, ptr %bytes.addr, align 8
  %call53 = call i32 @truncated(ptr %37, i64 %38)
  store i32 %call53, ptr %retval, align 4
  br label %return

if.end54:
  %39 = load ptr, ptr %table, align 8
  %call55 = call i32 @word_at(ptr %39)
  %conv56 = zext i32 %call55 to i64
  store i64 %conv56, ptr %length, align 8
  %40 = load i64, ptr %length, align 8
  %cmp57 = icmp ult i64 %40, 64
  br i1 %cmp57, label %if.then59, label %if.end61

if.then59:
  %41 = load ptr, ptr %net.addr, align 8
  %42 = load i64, ptr %length, align 8
  %call60 = call i32 @fail(ptr %41, i32 1, ptr @.str.12, ptr @.str.13, i64 %42)
  store i32 %call60, ptr %retval, align 4
  br label %return

if.end61:
  %43 = load ptr, ptr %table, align 8
  %add.ptr62 = getelementptr inbounds i8, ptr %43, i64 8
  %44 = load i64, ptr %length, align 8
  %sub63 = sub i64 %44, 8
  %call64 = call i32 @crc32(ptr %add.ptr62, i64 %sub63)
  store i32 %call64, ptr %found, align 4
  %45 = load i32, ptr %found, align 4
  %46 = load ptr, ptr %table, align 8
  %add.ptr65 = getelementptr inbounds i8, ptr %46, i64 4
  %call66 = call i32 @word_at(ptr %add.ptr65)
  %cmp67 = icmp ne i32 %45, %call66
  br i1 %cmp67, label %if.then69, label %if.end73

if.then69:
  %47 = load ptr, ptr %net.addr, align 8
  %48 = load ptr, ptr %table, align 8
  %add.ptr70 = getelementptr inbounds i8, ptr %48, i64 4
  %call71 = call i32 @word_at(ptr %add.ptr70)
  %49 = load i32, ptr %found, align 4
  %call72 = call i32 @damaged(ptr %47, ptr @.str.12, i32 %call71, i32 %49)
  store i32 %call72, ptr %retval, align 4
  br label %return

if.end73:
  %50 = load ptr, ptr %table, align 8
  %add.ptr74 = getelementptr inbounds i8, ptr %50, i64 8
  %call75 = call i64 @size_at(ptr %add.ptr74)
  %51 = load ptr, ptr %net.addr, align 8
  %dram_bytes = getelementptr inbounds %struct.vdla, ptr %51, i32 0, i32 4
  store i64 %call75, ptr %dram_bytes, align 8
  %52 = load ptr, ptr %table, align 8
  %add.ptr76 = getelementptr inbounds i8, ptr %52, i64 16
  %call77 = call i32 @word_at(ptr %add.ptr76)
  %53 = load ptr, ptr %net.addr, align 8
  %isa = getelementptr inbounds %struct.vdla, ptr %53, i32 0, i32 6
  store i32 %call77, ptr %isa, align 8
  %54 = load ptr, ptr %table, align 8
  %add.ptr78 = getelementptr inbounds i8, ptr %54, i64 20
  %call79 = call i32 @word_at(ptr %add.ptr78)
  %55 = load ptr, ptr %net.addr, align 8
  %config = getelementptr inbounds %struct.vdla, ptr %55, i32 0, i32 7
  store i32 %call79, ptr %config, align 4
  %56 = load ptr, ptr %table, align 8
  %57 = load i64, ptr %length, align 8
  %add.ptr80 = getelementptr inbounds i8, ptr %56, i64 %57
  %58 = load ptr, ptr %net.addr, align 8
  %sections = getelementptr inbounds %struct.vdla, ptr %58, i32 0, i32 3
  store ptr %add.ptr80, ptr %sections, align 8
  %59 = load ptr, ptr %net.addr, align 8
  %60 = load ptr, ptr %table, align 8
  %61 = load i64, ptr %length, align 8
  %call81 = call i32 @find_lists(ptr %59, ptr %60, i64 %61)
  store i32 %call81, ptr %status, align 4
  %62 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %62, 0
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %63 = load i32, ptr %status, align 4
  br label %cond.end

cond.false:
  %64 = load ptr, ptr %net.addr, align 8
  %65 = load i64, ptr %bytes.addr, align 8
  %call82 = call i32 @check_sections(ptr %64, i64 %65)
  br label %cond.end

cond.end:
  %cond = phi i32 [ %63, %cond.true ], [ %call82, %cond.false ]
  store i32 %cond, ptr %retval, align 4
  br label %return

return:
  %66 = load i32, ptr %retval, align 4
  ret i32 %66
}

define internal i32 @truncated(ptr %net, i64 %bytes) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %bytes.addr = alloca i64, align 8
  %words = alloca %struct.words, align 8
  store ptr %net, ptr %net.addr, align 8
  store i64 %bytes, ptr %bytes.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %0, ptr %words)
  call void @put(ptr %words, ptr @.str.30)
  %1 = load i64, ptr %bytes.addr, align 8
  call void @put_number(ptr %words, i64 %1)
  call void @put(ptr %words, ptr @.str.31)
  ret i32 1
}

define internal i32 @word_at(ptr %at) nounwind {
entry:
  %at.addr = alloca ptr, align 8
  store ptr %at, ptr %at.addr, align 8
  %0 = load ptr, ptr %at.addr, align 8
  %arrayidx = getelementptr inbounds i8, ptr %0, i64 0
  %1 = load i8, ptr %arrayidx, align 1
  %conv = zext i8 %1 to i32
  %2 = load ptr, ptr %at.addr, align 8
  %arrayidx1 = getelementptr inbounds i8, ptr %2, i64 1
  %3 = load i8, ptr %arrayidx1, align 1
  %conv2 = zext i8 %3 to i32
  %shl = shl i32 %conv2, 8
  %or = or i32 %conv, %shl
  %4 = load ptr, ptr %at.addr, align 8
  %arrayidx3 = getelementptr inbounds i8, ptr %4, i64 2
  %5 = load i8, ptr %arrayidx3, align 1
  %conv4 = zext i8 %5 to i32
  %shl5 = shl i32 %conv4, 16
  %or6 = or i32 %or, %shl5
  %6 = load ptr, ptr %at.addr, align 8
  %arrayidx7 = getelementptr inbounds i8, ptr %6, i64 3
  %7 = load i8, ptr %arrayidx7, align 1
  %conv8 = zext i8 %7 to i32
  %shl9 = shl i32 %conv8, 24
  %or10 = or i32 %or6, %shl9
  ret i32 %or10
}

define internal i32 @damaged(ptr %net, ptr %what, i32 %expected, i32 %found) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %what.addr = alloca ptr, align 8
  %expected.addr = alloca i32, align 4
  %found.addr = alloca i32, align 4
  %words = alloca %struct.words, align 8
  store ptr %net, ptr %net.addr, align 8
  store ptr %what, ptr %what.addr, align 8
  store i32 %expected, ptr %expected.addr, align 4
  store i32 %found, ptr %found.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %0, ptr %words)
  %1 = load ptr, ptr %what.addr, align 8
  call void @put(ptr %words, ptr %1)
  call void @put(ptr %words, ptr @.str.32)
  %2 = load i32, ptr %expected.addr, align 4
  call void @put_hex(ptr %words, i32 %2)
  call void @put(ptr %words, ptr @.str.5)
  %3 = load i32, ptr %found.addr, align 4
  call void @put_hex(ptr %words, i32 %3)
  ret i32 1
}

define internal i32 @find_lists(ptr %net, ptr %table, i64 %bytes) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %table.addr = alloca ptr, align 8
  %bytes.addr = alloca i64, align 8
  %at = alloca i64, align 8
  %list = alloca i32, align 4
  %count = alloca i32, align 4
  %each = alloca i64, align 8
  %.compoundliteral = alloca %struct.list, align 8
  %texts = alloca %struct.list, align 8
  store ptr %net, ptr %net.addr, align 8
  store ptr %table, ptr %table.addr, align 8
  store i64 %bytes, ptr %bytes.addr, align 8
  store i64 64, ptr %at, align 8
  store i32 0, ptr %list, align 4
  br label %for.cond

for.cond:
  %0 = load i32, ptr %list, align 4
  %cmp = icmp slt i32 %0, 10
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %1 = load ptr, ptr %table.addr, align 8
  %2 = load i32, ptr %list, align 4
  %add = add nsw i32 6, %2
  %mul = mul nsw i32 4, %add
  %idx.ext = sext i32 %mul to i64
  %add.ptr = getelementptr inbounds i8, ptr %1, i64 %idx.ext
  %call = call i32 @word_at(ptr %add.ptr)
  store i32 %call, ptr %count, align 4
  %3 = load i32, ptr %list, align 4
  %cmp1 = icmp eq i32 %3, 9
  br i1 %cmp1, label %cond.true, label %cond.false

cond.true:
  br label %cond.end

cond.false:
  %4 = load i32, ptr %list, align 4
  %idxprom = sext i32 %4 to i64
  %arrayidx = getelementptr inbounds [9 x i32], ptr @ENTRY_WORDS, i64 0, i64 %idxprom
  %5 = load i32, ptr %arrayidx, align 4
  %conv = sext i32 %5 to i64
  %mul2 = mul i64 4, %conv
  br label %cond.end

cond.end:
  %cond = phi i64 [ 1, %cond.true ], [ %mul2, %cond.false ]
  store i64 %cond, ptr %each, align 8
  %6 = load i32, ptr %count, align 4
  %conv3 = zext i32 %6 to i64
  %7 = load i64, ptr %bytes.addr, align 8
  %8 = load i64, ptr %at, align 8
  %sub = sub i64 %7, %8
  %9 = load i64, ptr %each, align 8
  %div = udiv i64 %sub, %9
  %cmp4 = icmp ugt i64 %conv3, %div
  br i1 %cmp4, label %if.then, label %if.end

if.then:
  %10 = load ptr, ptr %net.addr, align 8
  %11 = load i32, ptr %count, align 4
  %conv6 = zext i32 %11 to i64
  %call7 = call i32 @fail(ptr %10, i32 1, ptr @.str.12, ptr @.str.33, i64 %conv6)
  store i32 %call7, ptr %retval, align 4
  br label %return

if.end:
  %12 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %12, i32 0, i32 2
  %13 = load i32, ptr %list, align 4
  %idxprom8 = sext i32 %13 to i64
  %arrayidx9 = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 %idxprom8
  %first = getelementptr inbounds %struct.list, ptr %.compoundliteral, i32 0, i32 0
  %14 = load ptr, ptr %table.addr, align 8
  %15 = load i64, ptr %at, align 8
  %add.ptr10 = getelementptr inbounds i8, ptr %14, i64 %15
  store ptr %add.ptr10, ptr %first, align 8
  %count11 = getelementptr inbounds %struct.list, ptr %.compoundliteral, i32 0, i32 1
  %16 = load i32, ptr %count, align 4
  store i32 %16, ptr %count11, align 8
  %17 = getelementptr i8, ptr %.compoundliteral, i64 12
  call void @llvm.memset.p0.i64(ptr align 4 %17, i8 0, i64 4, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %arrayidx9, ptr align 8 %.compoundliteral, i64 16, i1 false)
  %18 = load i64, ptr %each, align 8
  %19 = load i32, ptr %count, align 4
  %conv12 = zext i32 %19 to i64
  %mul13 = mul i64 %18, %conv12
  %20 = load i64, ptr %at, align 8
  %add14 = add i64 %20, %mul13
  store i64 %add14, ptr %at, align 8
  br label %for.inc

for.inc:
  %21 = load i32, ptr %list, align 4
  %inc = add nsw i32 %21, 1
  store i32 %inc, ptr %list, align 4
  br label %for.cond

for.end:
  %22 = load ptr, ptr %net.addr, align 8
  %lists15 = getelementptr inbounds %struct.vdla, ptr %22, i32 0, i32 2
  %arrayidx16 = getelementptr inbounds [10 x %struct.list], ptr %lists15, i64 0, i64 9
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %texts, ptr align 8 %arrayidx16, i64 16, i1 false)
  %count17 = getelementptr inbounds %struct.list, ptr %texts, i32 0, i32 1
  %23 = load i32, ptr %count17, align 8
  %cmp18 = icmp eq i32 %23, 0
  br i1 %cmp18, label %if.then31, label %lor.lhs.false

lor.lhs.false:
  %first20 = getelementptr inbounds %struct.list, ptr %texts, i32 0, i32 0
  %24 = load ptr, ptr %first20, align 8
  %arrayidx21 = getelementptr inbounds i8, ptr %24, i64 0
  %25 = load i8, ptr %arrayidx21, align 1
  %conv22 = zext i8 %25 to i32
  %tobool = icmp ne i32 %conv22, 0
  br i1 %tobool, label %if.then31, label %lor.lhs.false23

lor.lhs.false23:
  %first24 = getelementptr inbounds %struct.list, ptr %texts, i32 0, i32 0
  %26 = load ptr, ptr %first24, align 8
  %count25 = getelementptr inbounds %struct.list, ptr %texts, i32 0, i32 1
  %27 = load i32, ptr %count25, align 8
  %sub26 = sub i32 %27, 1
  %idxprom27 = zext i32 %sub26 to i64
  %arrayidx28 = getelementptr inbounds i8, ptr %26, i64 %idxprom27
  %28 = load i8, ptr %arrayidx28, align 1
  %conv29 = zext i8 %28 to i32
  %tobool30 = icmp ne i32 %conv29, 0
  br i1 %tobool30, label %if.then31, label %if.end33

if.then31:
  %29 = load ptr, ptr %net.addr, align 8
  %call32 = call i32 @fail_with(ptr %29, i32 1, ptr @.str.12, ptr @.str.34, ptr @.str.35)
  store i32 %call32, ptr %retval, align 4
  br label %return

if.end33:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %30 = load i32, ptr %retval, align 4
  ret i32 %30
}

define internal i32 @check_sections(ptr %net, i64 %bytes_of_file) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %bytes_of_file.addr = alloca i64, align 8
  %left = alloca i64, align 8
  %data = alloca ptr, align 8
  %n = alloca i32, align 4
  %section = alloca ptr, align 8
  %bytes2 = alloca i64, align 8
  %expected = alloca i32, align 4
  %found = alloca i32, align 4
  %first = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  store i64 %bytes_of_file, ptr %bytes_of_file.addr, align 8
  %0 = load i64, ptr %bytes_of_file.addr, align 8
  %1 = load ptr, ptr %net.addr, align 8
  %sections = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 3
  %2 = load ptr, ptr %sections, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %bytes = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 1
  %4 = load ptr, ptr %bytes, align 8
  %sub.ptr.lhs.cast = ptrtoint ptr %2 to i64
  %sub.ptr.rhs.cast = ptrtoint ptr %4 to i64
  %sub.ptr.sub = sub i64 %sub.ptr.lhs.cast, %sub.ptr.rhs.cast
  %sub = sub i64 %0, %sub.ptr.sub
  store i64 %sub, ptr %left, align 8
  %5 = load ptr, ptr %net.addr, align 8
  %sections1 = getelementptr inbounds %struct.vdla, ptr %5, i32 0, i32 3
  %6 = load ptr, ptr %sections1, align 8
  store ptr %6, ptr %data, align 8
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %7 = load i32, ptr %n, align 4
  %8 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %8, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 8
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %9 = load i32, ptr %count, align 8
  %cmp = icmp ult i32 %7, %9
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %10 = load ptr, ptr %net.addr, align 8
  %11 = load i32, ptr %n, align 4
  %call = call ptr @entry(ptr %10, i32 8, i32 %11, i32 4)
  store ptr %call, ptr %section, align 8
  %12 = load ptr, ptr %section, align 8
  %add.ptr = getelementptr inbounds i8, ptr %12, i64 4
  %call3 = call i64 @size_at(ptr %add.ptr)
  store i64 %call3, ptr %bytes2, align 8
  %13 = load i64, ptr %bytes2, align 8
  %14 = load i64, ptr %left, align 8
  %cmp4 = icmp ugt i64 %13, %14
  br i1 %cmp4, label %if.then, label %if.end

if.then:
  %15 = load ptr, ptr %net.addr, align 8
  %16 = load i64, ptr %bytes_of_file.addr, align 8
  %call5 = call i32 @truncated(ptr %15, i64 %16)
  store i32 %call5, ptr %retval, align 4
  br label %return

if.end:
  %17 = load ptr, ptr %section, align 8
  %add.ptr6 = getelementptr inbounds i8, ptr %17, i64 12
  %call7 = call i32 @word_at(ptr %add.ptr6)
  store i32 %call7, ptr %expected, align 4
  %18 = load ptr, ptr %data, align 8
  %19 = load i64, ptr %bytes2, align 8
  %call8 = call i32 @crc32(ptr %18, i64 %19)
  store i32 %call8, ptr %found, align 4
  %20 = load i32, ptr %expected, align 4
  %21 = load i32, ptr %found, align 4
  %cmp9 = icmp ne i32 %20, %21
  br i1 %cmp9, label %if.then10, label %if.end12

if.then10:
  %22 = load ptr, ptr %net.addr, align 8
  %23 = load i32, ptr %expected, align 4
  %24 = load i32, ptr %found, align 4
  %call11 = call i32 @damaged(ptr %22, ptr @.str.36, i32 %23, i32 %24)
  store i32 %call11, ptr %retval, align 4
  br label %return

if.end12:
  %25 = load i64, ptr %bytes2, align 8
  %26 = load ptr, ptr %data, align 8
  %add.ptr13 = getelementptr inbounds i8, ptr %26, i64 %25
  store ptr %add.ptr13, ptr %data, align 8
  %27 = load i64, ptr %bytes2, align 8
  %28 = load i64, ptr %left, align 8
  %sub14 = sub i64 %28, %27
  store i64 %sub14, ptr %left, align 8
  br label %for.inc

for.inc:
  %29 = load i32, ptr %n, align 4
  %inc = add i32 %29, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  %30 = load i64, ptr %left, align 8
  %tobool = icmp ne i64 %30, 0
  br i1 %tobool, label %if.then15, label %if.end17

if.then15:
  %31 = load ptr, ptr %net.addr, align 8
  %call16 = call i32 @fail_with(ptr %31, i32 1, ptr @.str.6, ptr @.str.37, ptr @.str.38)
  store i32 %call16, ptr %retval, align 4
  br label %return

if.end17:
  %32 = load ptr, ptr %net.addr, align 8
  %lists18 = getelementptr inbounds %struct.vdla, ptr %32, i32 0, i32 2
  %arrayidx19 = getelementptr inbounds [10 x %struct.list], ptr %lists18, i64 0, i64 8
  %first20 = getelementptr inbounds %struct.list, ptr %arrayidx19, i32 0, i32 0
  %33 = load ptr, ptr %first20, align 8
  store ptr %33, ptr %first, align 8
  %34 = load ptr, ptr %net.addr, align 8
  %lists21 = getelementptr inbounds %struct.vdla, ptr %34, i32 0, i32 2
  %arrayidx22 = getelementptr inbounds [10 x %struct.list], ptr %lists21, i64 0, i64 8
  %count23 = getelementptr inbounds %struct.list, ptr %arrayidx22, i32 0, i32 1
  %35 = load i32, ptr %count23, align 8
  %cmp24 = icmp eq i32 %35, 0
  br i1 %cmp24, label %if.then28, label %lor.lhs.false

lor.lhs.false:
  %36 = load ptr, ptr %first, align 8
  %add.ptr25 = getelementptr inbounds i8, ptr %36, i64 0
  %call26 = call i32 @word_at(ptr %add.ptr25)
  %cmp27 = icmp ne i32 %call26, 0
  br i1 %cmp27, label %if.then28, label %if.end30

if.then28:
  %37 = load ptr, ptr %net.addr, align 8
  %call29 = call i32 @fail_with(ptr %37, i32 1, ptr @.str.6, ptr @.str.39, ptr @.str.17)
  store i32 %call29, ptr %retval, align 4
  br label %return

if.end30:
  %38 = load ptr, ptr %first, align 8
  %add.ptr31 = getelementptr inbounds i8, ptr %38, i64 4
  %call32 = call i64 @size_at(ptr %add.ptr31)
  %39 = load ptr, ptr %net.addr, align 8
  %constant_bytes = getelementptr inbounds %struct.vdla, ptr %39, i32 0, i32 5
  store i64 %call32, ptr %constant_bytes, align 8
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %40 = load i32, ptr %retval, align 4
  ret i32 %40
}

define i32 @type_bytes(i32 %type) noinline nounwind {
entry:
  %type.addr = alloca i32, align 4
  store i32 %type, ptr %type.addr, align 4
  %0 = load i32, ptr %type.addr, align 4
  %idxprom = zext i32 %0 to i64
  %arrayidx = getelementptr inbounds [23 x i8], ptr @type_bytes.BYTES, i64 0, i64 %idxprom
  %1 = load i8, ptr %arrayidx, align 1
  %conv = zext i8 %1 to i32
  ret i32 %conv
}

define i32 @check_module(ptr %net) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %status = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %dram_bytes = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 4
  %1 = load i64, ptr %dram_bytes, align 8
  %cmp = icmp ugt i64 %1, 9223372036854775807
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %2 = load ptr, ptr %net.addr, align 8
  %constant_bytes = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 5
  %3 = load i64, ptr %constant_bytes, align 8
  %4 = load ptr, ptr %net.addr, align 8
  %dram_bytes1 = getelementptr inbounds %struct.vdla, ptr %4, i32 0, i32 4
  %5 = load i64, ptr %dram_bytes1, align 8
  %cmp2 = icmp ugt i64 %3, %5
  br i1 %cmp2, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load ptr, ptr %net.addr, align 8
  %dram_bytes3 = getelementptr inbounds %struct.vdla, ptr %7, i32 0, i32 4
  %8 = load i64, ptr %dram_bytes3, align 8
  %call = call i32 @wrong(ptr %6, ptr @.str.6, ptr @.str.14, i64 %8)
  store i32 %call, ptr %retval, align 4
  br label %return

if.end:
  %9 = load ptr, ptr %net.addr, align 8
  %call4 = call i32 @check_functions(ptr %9)
  store i32 %call4, ptr %status, align 4
  %10 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %10, 0
  br i1 %tobool, label %if.end7, label %if.then5

if.then5:
  %11 = load ptr, ptr %net.addr, align 8
  %call6 = call i32 @check_each(ptr %11, i32 0, ptr @check_tensor)
  store i32 %call6, ptr %status, align 4
  br label %if.end7

if.end7:
  %12 = load i32, ptr %status, align 4
  %tobool8 = icmp ne i32 %12, 0
  br i1 %tobool8, label %if.end11, label %if.then9

if.then9:
  %13 = load ptr, ptr %net.addr, align 8
  %call10 = call i32 @check_each(ptr %13, i32 2, ptr @check_input)
  store i32 %call10, ptr %status, align 4
  br label %if.end11

if.end11:
  %14 = load i32, ptr %status, align 4
  %tobool12 = icmp ne i32 %14, 0
  br i1 %tobool12, label %if.end15, label %if.then13

if.then13:
  %15 = load ptr, ptr %net.addr, align 8
  %call14 = call i32 @check_each(ptr %15, i32 3, ptr @check_output)
  store i32 %call14, ptr %status, align 4
  br label %if.end15

if.end15:
  %16 = load i32, ptr %status, align 4
  %tobool16 = icmp ne i32 %16, 0
  br i1 %tobool16, label %if.end19, label %if.then17

if.then17:
  %17 = load ptr, ptr %net.addr, align 8
  %call18 = call i32 @check_ranges(ptr %17)
  store i32 %call18, ptr %status, align 4
  br label %if.end19

if.end19:
  %18 = load i32, ptr %status, align 4
  %tobool20 = icmp ne i32 %18, 0
  br i1 %tobool20, label %if.end23, label %if.then21

if.then21:
  %19 = load ptr, ptr %net.addr, align 8
  %call22 = call i32 @check_each(ptr %19, i32 4, ptr @check_step)
  store i32 %call22, ptr %status, align 4
  br label %if.end23

if.end23:
  %20 = load i32, ptr %status, align 4
  store i32 %20, ptr %retval, align 4
  br label %return

return:
  %21 = load i32, ptr %retval, align 4
  ret i32 %21
}

define internal i32 @wrong(ptr %net, ptr %where, ptr %expected, i64 %found) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %where.addr = alloca ptr, align 8
  %expected.addr = alloca ptr, align 8
  %found.addr = alloca i64, align 8
  store ptr %net, ptr %net.addr, align 8
  store ptr %where, ptr %where.addr, align 8
  store ptr %expected, ptr %expected.addr, align 8
  store i64 %found, ptr %found.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %where.addr, align 8
  %2 = load ptr, ptr %expected.addr, align 8
  %3 = load i64, ptr %found.addr, align 8
  %call = call i32 @fail(ptr %0, i32 1, ptr %1, ptr %2, i64 %3)
  ret i32 %call
}

define internal i32 @check_functions(ptr %net) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %count = alloca i32, align 4
  %words = alloca %struct.words, align 8
  %n = alloca i32, align 4
  %place = alloca i32, align 4
  %name = alloca ptr, align 8
  %own = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 6
  %count1 = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %1 = load i32, ptr %count1, align 8
  store i32 %1, ptr %count, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %code = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 8
  %3 = load ptr, ptr %code, align 8
  %cmp = icmp eq ptr %3, null
  br i1 %cmp, label %land.lhs.true, label %if.end

land.lhs.true:
  %4 = load i32, ptr %count, align 4
  %cmp2 = icmp eq i32 %4, 0
  br i1 %cmp2, label %if.then, label %if.end

if.then:
  store i32 0, ptr %retval, align 4
  br label %return

if.end:
  %5 = load ptr, ptr %net.addr, align 8
  %code3 = getelementptr inbounds %struct.vdla, ptr %5, i32 0, i32 8
  %6 = load ptr, ptr %code3, align 8
  %cmp4 = icmp eq ptr %6, null
  br i1 %cmp4, label %if.then9, label %lor.lhs.false

lor.lhs.false:
  %7 = load ptr, ptr %net.addr, align 8
  %code5 = getelementptr inbounds %struct.vdla, ptr %7, i32 0, i32 8
  %8 = load ptr, ptr %code5, align 8
  %count6 = getelementptr inbounds %struct.vdla_code, ptr %8, i32 0, i32 1
  %9 = load i64, ptr %count6, align 8
  %10 = load i32, ptr %count, align 4
  %conv = zext i32 %10 to i64
  %cmp7 = icmp ne i64 %9, %conv
  br i1 %cmp7, label %if.then9, label %if.end13

if.then9:
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load ptr, ptr %net.addr, align 8
  %code10 = getelementptr inbounds %struct.vdla, ptr %12, i32 0, i32 8
  %13 = load ptr, ptr %code10, align 8
  %tobool = icmp ne ptr %13, null
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %14 = load ptr, ptr %net.addr, align 8
  %code11 = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 8
  %15 = load ptr, ptr %code11, align 8
  %count12 = getelementptr inbounds %struct.vdla_code, ptr %15, i32 0, i32 1
  %16 = load i64, ptr %count12, align 8
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi i64 [ %16, %cond.true ], [ 0, %cond.false ]
  %call = call i32 @fail(ptr %11, i32 2, ptr @.str.40, ptr @.str.41, i64 %cond)
  store i32 %call, ptr %retval, align 4
  br label %return

if.end13:
  %17 = load ptr, ptr %net.addr, align 8
  %code14 = getelementptr inbounds %struct.vdla, ptr %17, i32 0, i32 8
  %18 = load ptr, ptr %code14, align 8
  %is_for_this_processor = getelementptr inbounds %struct.vdla_code, ptr %18, i32 0, i32 2
  %19 = load ptr, ptr %is_for_this_processor, align 8
  %tobool15 = icmp ne ptr %19, null
  br i1 %tobool15, label %land.lhs.true16, label %if.end22

land.lhs.true16:
  %20 = load ptr, ptr %net.addr, align 8
  %code17 = getelementptr inbounds %struct.vdla, ptr %20, i32 0, i32 8
  %21 = load ptr, ptr %code17, align 8
  %is_for_this_processor18 = getelementptr inbounds %struct.vdla_code, ptr %21, i32 0, i32 2
  %22 = load ptr, ptr %is_for_this_processor18, align 8
  %call19 = call i32 %22()
  %tobool20 = icmp ne i32 %call19, 0
  br i1 %tobool20, label %if.end22, label %if.then21

if.then21:
  %23 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %23, ptr %words)
  call void @put(ptr %words, ptr @.str.42)
  store i32 2, ptr %retval, align 4
  br label %return

if.end22:
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %24 = load i32, ptr %n, align 4
  %25 = load i32, ptr %count, align 4
  %cmp23 = icmp ult i32 %24, %25
  br i1 %cmp23, label %for.body, label %for.end

for.body:
  %26 = load ptr, ptr %net.addr, align 8
  %27 = load i32, ptr %n, align 4
  %call25 = call i32 @word(ptr %26, i32 6, i32 %27)
  store i32 %call25, ptr %place, align 4
  %28 = load ptr, ptr %net.addr, align 8
  %29 = load i32, ptr %place, align 4
  %call26 = call i32 @is_text(ptr %28, i32 %29)
  %tobool27 = icmp ne i32 %call26, 0
  br i1 %tobool27, label %if.end31, label %if.then28

if.then28:
  %30 = load ptr, ptr %net.addr, align 8
  %31 = load i32, ptr %n, align 4
  %conv29 = zext i32 %31 to i64
  %call30 = call i32 @wrong(ptr %30, ptr @.str.43, ptr @.str.44, i64 %conv29)
  store i32 %call30, ptr %retval, align 4
  br label %return

if.end31:
  %32 = load ptr, ptr %net.addr, align 8
  %33 = load i32, ptr %place, align 4
  %call32 = call ptr @text(ptr %32, i32 %33)
  store ptr %call32, ptr %name, align 8
  %34 = load ptr, ptr %net.addr, align 8
  %code33 = getelementptr inbounds %struct.vdla, ptr %34, i32 0, i32 8
  %35 = load ptr, ptr %code33, align 8
  %functions = getelementptr inbounds %struct.vdla_code, ptr %35, i32 0, i32 0
  %36 = load ptr, ptr %functions, align 8
  %37 = load i32, ptr %n, align 4
  %idxprom = zext i32 %37 to i64
  %arrayidx34 = getelementptr inbounds %struct.vdla_function, ptr %36, i64 %idxprom
  %name35 = getelementptr inbounds %struct.vdla_function, ptr %arrayidx34, i32 0, i32 0
  %38 = load ptr, ptr %name35, align 8
  store ptr %38, ptr %own, align 8
  br label %while.cond

while.cond:
  %39 = load ptr, ptr %name, align 8
  %40 = load i8, ptr %39, align 1
  %conv36 = zext i8 %40 to i32
  %tobool37 = icmp ne i32 %conv36, 0
  br i1 %tobool37, label %land.rhs, label %land.end

land.rhs:
  %41 = load ptr, ptr %name, align 8
  %42 = load i8, ptr %41, align 1
  %conv38 = zext i8 %42 to i32
  %43 = load ptr, ptr %own, align 8
  %44 = load i8, ptr %43, align 1
  %conv39 = zext i8 %44 to i32
  %cmp40 = icmp eq i32 %conv38, %conv39
  br label %land.end

land.end:
  %45 = phi i1 [ false, %while.cond ], [ %cmp40, %land.rhs ]
  br i1 %45, label %while.body, label %while.end

while.body:
  %46 = load ptr, ptr %name, align 8
  %incdec.ptr = getelementptr inbounds i8, ptr %46, i32 1
  store ptr %incdec.ptr, ptr %name, align 8
  %47 = load ptr, ptr %own, align 8
  %incdec.ptr42 = getelementptr inbounds i8, ptr %47, i32 1
  store ptr %incdec.ptr42, ptr %own, align 8
  br label %while.cond

while.end:
  %48 = load ptr, ptr %name, align 8
  %49 = load i8, ptr %48, align 1
  %conv43 = zext i8 %49 to i32
  %50 = load ptr, ptr %own, align 8
  %51 = load i8, ptr %50, align 1
  %conv44 = zext i8 %51 to i32
  %cmp45 = icmp ne i32 %conv43, %conv44
  br i1 %cmp45, label %if.then47, label %if.end49

if.then47:
  %52 = load ptr, ptr %net.addr, align 8
  %call48 = call i32 @fail_with(ptr %52, i32 2, ptr @.str.40, ptr @.str.45, ptr @.str.35)
  store i32 %call48, ptr %retval, align 4
  br label %return

if.end49:
  br label %for.inc

for.inc:
  %53 = load i32, ptr %n, align 4
  %inc = add i32 %53, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %54 = load i32, ptr %retval, align 4
  ret i32 %54
}

define internal i32 @check_each(ptr %net, i32 %list, ptr %check) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %list.addr = alloca i32, align 4
  %check.addr = alloca ptr, align 8
  %n = alloca i32, align 4
  %status = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %list, ptr %list.addr, align 4
  store ptr %check, ptr %check.addr, align 8
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %0 = load i32, ptr %n, align 4
  %1 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 2
  %2 = load i32, ptr %list.addr, align 4
  %idxprom = sext i32 %2 to i64
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 %idxprom
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %3 = load i32, ptr %count, align 8
  %cmp = icmp ult i32 %0, %3
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %4 = load ptr, ptr %check.addr, align 8
  %5 = load ptr, ptr %net.addr, align 8
  %6 = load i32, ptr %n, align 4
  %call = call i32 %4(ptr %5, i32 %6)
  store i32 %call, ptr %status, align 4
  %7 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %7, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %8 = load i32, ptr %status, align 4
  store i32 %8, ptr %retval, align 4
  br label %return

if.end:
  br label %for.inc

for.inc:
  %9 = load i32, ptr %n, align 4
  %inc = add i32 %9, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %10 = load i32, ptr %retval, align 4
  ret i32 %10
}

define internal i32 @check_tensor(ptr %net, i32 %tensor) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %offset = alloca i64, align 8
  %bytes = alloca i64, align 8
  %type = alloca i32, align 4
  %rank = alloca i32, align 4
  %first = alloca i32, align 4
  %sizes = alloca i32, align 4
  %each = alloca i64, align 8
  %is_empty = alloca i32, align 4
  %axis = alloca i32, align 4
  %axis34 = alloca i32, align 4
  %size = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call i64 @tensor_offset(ptr %0, i32 %1)
  store i64 %call, ptr %offset, align 8
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %tensor.addr, align 4
  %call1 = call i64 @tensor_bytes(ptr %2, i32 %3)
  store i64 %call1, ptr %bytes, align 8
  %4 = load i64, ptr %offset, align 8
  %5 = load ptr, ptr %net.addr, align 8
  %dram_bytes = getelementptr inbounds %struct.vdla, ptr %5, i32 0, i32 4
  %6 = load i64, ptr %dram_bytes, align 8
  %cmp = icmp ugt i64 %4, %6
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %7 = load i64, ptr %bytes, align 8
  %8 = load ptr, ptr %net.addr, align 8
  %dram_bytes2 = getelementptr inbounds %struct.vdla, ptr %8, i32 0, i32 4
  %9 = load i64, ptr %dram_bytes2, align 8
  %10 = load i64, ptr %offset, align 8
  %sub = sub i64 %9, %10
  %cmp3 = icmp ugt i64 %7, %sub
  br i1 %cmp3, label %if.then, label %if.end

if.then:
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load i64, ptr %offset, align 8
  %call4 = call i32 @wrong(ptr %11, ptr @.str.46, ptr @.str.47, i64 %12)
  store i32 %call4, ptr %retval, align 4
  br label %return

if.end:
  %13 = load ptr, ptr %net.addr, align 8
  %14 = load i32, ptr %tensor.addr, align 4
  %call5 = call i32 @tensor_type(ptr %13, i32 %14)
  store i32 %call5, ptr %type, align 4
  %15 = load ptr, ptr %net.addr, align 8
  %16 = load i32, ptr %tensor.addr, align 4
  %call6 = call i32 @tensor_rank(ptr %15, i32 %16)
  store i32 %call6, ptr %rank, align 4
  %17 = load ptr, ptr %net.addr, align 8
  %18 = load i32, ptr %tensor.addr, align 4
  %call7 = call i32 @tensor_word(ptr %17, i32 %18, i32 5)
  store i32 %call7, ptr %first, align 4
  %19 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %19, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 1
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %20 = load i32, ptr %count, align 8
  store i32 %20, ptr %sizes, align 4
  %21 = load i32, ptr %type, align 4
  %cmp8 = icmp uge i32 %21, 23
  br i1 %cmp8, label %if.then9, label %if.end11

if.then9:
  %22 = load ptr, ptr %net.addr, align 8
  %23 = load i32, ptr %type, align 4
  %conv = zext i32 %23 to i64
  %call10 = call i32 @wrong(ptr %22, ptr @.str.46, ptr @.str.48, i64 %conv)
  store i32 %call10, ptr %retval, align 4
  br label %return

if.end11:
  %24 = load i32, ptr %first, align 4
  %25 = load i32, ptr %sizes, align 4
  %cmp12 = icmp ugt i32 %24, %25
  br i1 %cmp12, label %if.then18, label %lor.lhs.false14

lor.lhs.false14:
  %26 = load i32, ptr %rank, align 4
  %27 = load i32, ptr %sizes, align 4
  %28 = load i32, ptr %first, align 4
  %sub15 = sub i32 %27, %28
  %cmp16 = icmp ugt i32 %26, %sub15
  br i1 %cmp16, label %if.then18, label %if.end20

if.then18:
  %29 = load ptr, ptr %net.addr, align 8
  %call19 = call i32 @fail_with(ptr %29, i32 1, ptr @.str.46, ptr @.str.49, ptr @.str.35)
  store i32 %call19, ptr %retval, align 4
  br label %return

if.end20:
  %30 = load ptr, ptr %net.addr, align 8
  %31 = load ptr, ptr %net.addr, align 8
  %32 = load i32, ptr %tensor.addr, align 4
  %call21 = call i32 @tensor_word(ptr %31, i32 %32, i32 6)
  %call22 = call i32 @is_text(ptr %30, i32 %call21)
  %tobool = icmp ne i32 %call22, 0
  br i1 %tobool, label %if.end26, label %if.then23

if.then23:
  %33 = load ptr, ptr %net.addr, align 8
  %34 = load i32, ptr %tensor.addr, align 4
  %conv24 = zext i32 %34 to i64
  %call25 = call i32 @wrong(ptr %33, ptr @.str.46, ptr @.str.44, i64 %conv24)
  store i32 %call25, ptr %retval, align 4
  br label %return

if.end26:
  %35 = load i32, ptr %type, align 4
  %call27 = call i32 @type_bytes(i32 %35)
  %conv28 = zext i32 %call27 to i64
  store i64 %conv28, ptr %each, align 8
  store i32 0, ptr %is_empty, align 4
  store i32 0, ptr %axis, align 4
  br label %for.cond

for.cond:
  %36 = load i32, ptr %axis, align 4
  %37 = load i32, ptr %rank, align 4
  %cmp29 = icmp ult i32 %36, %37
  br i1 %cmp29, label %for.body, label %for.end

for.body:
  %38 = load ptr, ptr %net.addr, align 8
  %39 = load i32, ptr %tensor.addr, align 4
  %40 = load i32, ptr %axis, align 4
  %call31 = call i32 @tensor_size(ptr %38, i32 %39, i32 %40)
  %cmp32 = icmp eq i32 %call31, 0
  %conv33 = zext i1 %cmp32 to i32
  %41 = load i32, ptr %is_empty, align 4
  %or = or i32 %41, %conv33
  store i32 %or, ptr %is_empty, align 4
  br label %for.inc

for.inc:
  %42 = load i32, ptr %axis, align 4
  %inc = add i32 %42, 1
  store i32 %inc, ptr %axis, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %axis34, align 4
  br label %for.cond35

for.cond35:
  %43 = load i32, ptr %axis34, align 4
  %44 = load i32, ptr %rank, align 4
  %cmp36 = icmp ult i32 %43, %44
  br i1 %cmp36, label %land.rhs, label %land.end

land.rhs:
  %45 = load i32, ptr %is_empty, align 4
  %tobool38 = icmp ne i32 %45, 0
  %lnot = xor i1 %tobool38, true
  br label %land.end

land.end:
  %46 = phi i1 [ false, %for.cond35 ], [ %lnot, %land.rhs ]
  br i1 %46, label %for.body39, label %for.end51

for.body39:
  %47 = load ptr, ptr %net.addr, align 8
  %48 = load i32, ptr %tensor.addr, align 4
  %49 = load i32, ptr %axis34, align 4
  %call40 = call i32 @tensor_size(ptr %47, i32 %48, i32 %49)
  store i32 %call40, ptr %size, align 4
  %50 = load i64, ptr %each, align 8
  %51 = load i32, ptr %size, align 4
  %conv41 = zext i32 %51 to i64
  %div = udiv i64 -1, %conv41
  %cmp42 = icmp ugt i64 %50, %div
  br i1 %cmp42, label %if.then44, label %if.end47

if.then44:
  %52 = load ptr, ptr %net.addr, align 8
  %53 = load i32, ptr %size, align 4
  %conv45 = zext i32 %53 to i64
  %call46 = call i32 @wrong(ptr %52, ptr @.str.46, ptr @.str.50, i64 %conv45)
  store i32 %call46, ptr %retval, align 4
  br label %return

if.end47:
  %54 = load i32, ptr %size, align 4
  %conv48 = zext i32 %54 to i64
  %55 = load i64, ptr %each, align 8
  %mul = mul i64 %55, %conv48
  store i64 %mul, ptr %each, align 8
  br label %for.inc49

for.inc49:
  %56 = load i32, ptr %axis34, align 4
  %inc50 = add i32 %56, 1
  store i32 %inc50, ptr %axis34, align 4
  br label %for.cond35

for.end51:
  %57 = load i64, ptr %bytes, align 8
  %58 = load i32, ptr %is_empty, align 4
  %tobool52 = icmp ne i32 %58, 0
  br i1 %tobool52, label %cond.true, label %cond.false

cond.true:
  br label %cond.end

cond.false:
  %59 = load i64, ptr %each, align 8
  br label %cond.end

cond.end:
  %cond = phi i64 [ 0, %cond.true ], [ %59, %cond.false ]
  %cmp53 = icmp ne i64 %57, %cond
  br i1 %cmp53, label %if.then55, label %if.end57

if.then55:
  %60 = load ptr, ptr %net.addr, align 8
  %61 = load i64, ptr %bytes, align 8
  %call56 = call i32 @wrong(ptr %60, ptr @.str.46, ptr @.str.51, i64 %61)
  store i32 %call56, ptr %retval, align 4
  br label %return

if.end57:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %62 = load i32, ptr %retval, align 4
  ret i32 %62
}

define internal i32 @check_input(ptr %net, i32 %number) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %number.addr = alloca i32, align 4
  %tensor = alloca i32, align 4
  %status = alloca i32, align 4
  %type = alloca i32, align 4
  %is_integer = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %number, ptr %number.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %number.addr, align 4
  %mul = mul i32 2, %1
  %add = add i32 %mul, 0
  %call = call i32 @word(ptr %0, i32 2, i32 %add)
  store i32 %call, ptr %tensor, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %tensor, align 4
  %call1 = call i32 @check_shown(ptr %2, i32 %3)
  store i32 %call1, ptr %status, align 4
  %4 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %4, 0
  br i1 %tobool, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %5 = load ptr, ptr %net.addr, align 8
  %6 = load i32, ptr %number.addr, align 4
  %mul2 = mul i32 2, %6
  %add3 = add i32 %mul2, 1
  %call4 = call i32 @word(ptr %5, i32 2, i32 %add3)
  %cmp = icmp eq i32 %call4, 0
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %7 = load i32, ptr %status, align 4
  store i32 %7, ptr %retval, align 4
  br label %return

if.end:
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i32, ptr %tensor, align 4
  %call5 = call i32 @tensor_type(ptr %8, i32 %9)
  store i32 %call5, ptr %type, align 4
  %10 = load i32, ptr %type, align 4
  %cmp6 = icmp uge i32 %10, 1
  br i1 %cmp6, label %land.rhs, label %land.end

land.rhs:
  %11 = load i32, ptr %type, align 4
  %cmp7 = icmp ule i32 %11, 8
  br label %land.end

land.end:
  %12 = phi i1 [ false, %if.end ], [ %cmp7, %land.rhs ]
  %land.ext = zext i1 %12 to i32
  store i32 %land.ext, ptr %is_integer, align 4
  %13 = load i32, ptr %is_integer, align 4
  %tobool8 = icmp ne i32 %13, 0
  br i1 %tobool8, label %cond.true, label %cond.false

cond.true:
  br label %cond.end

cond.false:
  %14 = load ptr, ptr %net.addr, align 8
  %call9 = call i32 @fail_with(ptr %14, i32 1, ptr @.str.52, ptr @.str.53, ptr @.str.35)
  br label %cond.end

cond.end:
  %cond = phi i32 [ 0, %cond.true ], [ %call9, %cond.false ]
  store i32 %cond, ptr %retval, align 4
  br label %return

return:
  %15 = load i32, ptr %retval, align 4
  ret i32 %15
}

define internal i32 @check_output(ptr %net, i32 %number) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %number.addr = alloca i32, align 4
  %output = alloca ptr, align 8
  %kind = alloca i32, align 4
  %tensor = alloca i32, align 4
  %count = alloca i32, align 4
  %sizes = alloca i32, align 4
  %condition = alloca i32, align 4
  %status = alloca i32, align 4
  %rows = alloca i64, align 8
  %axes = alloca i64, align 8
  %fits = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %number, ptr %number.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %number.addr, align 4
  %call = call ptr @entry(ptr %0, i32 3, i32 %1, i32 6)
  store ptr %call, ptr %output, align 8
  %2 = load ptr, ptr %output, align 8
  %add.ptr = getelementptr inbounds i8, ptr %2, i64 4
  %call1 = call i32 @word_at(ptr %add.ptr)
  store i32 %call1, ptr %kind, align 4
  %3 = load ptr, ptr %output, align 8
  %add.ptr2 = getelementptr inbounds i8, ptr %3, i64 8
  %call3 = call i32 @word_at(ptr %add.ptr2)
  store i32 %call3, ptr %tensor, align 4
  %4 = load ptr, ptr %output, align 8
  %add.ptr4 = getelementptr inbounds i8, ptr %4, i64 12
  %call5 = call i32 @word_at(ptr %add.ptr4)
  store i32 %call5, ptr %count, align 4
  %5 = load ptr, ptr %output, align 8
  %add.ptr6 = getelementptr inbounds i8, ptr %5, i64 16
  %call7 = call i32 @word_at(ptr %add.ptr6)
  store i32 %call7, ptr %sizes, align 4
  %6 = load ptr, ptr %output, align 8
  %add.ptr8 = getelementptr inbounds i8, ptr %6, i64 20
  %call9 = call i32 @word_at(ptr %add.ptr8)
  store i32 %call9, ptr %condition, align 4
  %7 = load i32, ptr %kind, align 4
  %cmp = icmp ugt i32 %7, 4
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i32, ptr %kind, align 4
  %conv = zext i32 %9 to i64
  %call10 = call i32 @wrong(ptr %8, ptr @.str.57, ptr @.str.58, i64 %conv)
  store i32 %call10, ptr %retval, align 4
  br label %return

if.end:
  %10 = load ptr, ptr %net.addr, align 8
  %11 = load ptr, ptr %output, align 8
  %add.ptr11 = getelementptr inbounds i8, ptr %11, i64 0
  %call12 = call i32 @word_at(ptr %add.ptr11)
  %call13 = call i32 @is_text(ptr %10, i32 %call12)
  %tobool = icmp ne i32 %call13, 0
  br i1 %tobool, label %if.end17, label %if.then14

if.then14:
  %12 = load ptr, ptr %net.addr, align 8
  %13 = load i32, ptr %number.addr, align 4
  %conv15 = zext i32 %13 to i64
  %call16 = call i32 @wrong(ptr %12, ptr @.str.57, ptr @.str.44, i64 %conv15)
  store i32 %call16, ptr %retval, align 4
  br label %return

if.end17:
  %14 = load i32, ptr %condition, align 4
  %cmp18 = icmp ne i32 %14, -1
  br i1 %cmp18, label %land.lhs.true, label %if.end25

land.lhs.true:
  %15 = load ptr, ptr %net.addr, align 8
  %16 = load i32, ptr %condition, align 4
  %call20 = call i32 @is_single(ptr %15, i32 %16, i32 0)
  %tobool21 = icmp ne i32 %call20, 0
  br i1 %tobool21, label %if.end25, label %if.then22

if.then22:
  %17 = load ptr, ptr %net.addr, align 8
  %18 = load i32, ptr %condition, align 4
  %conv23 = zext i32 %18 to i64
  %call24 = call i32 @wrong(ptr %17, ptr @.str.57, ptr @.str.59, i64 %conv23)
  store i32 %call24, ptr %retval, align 4
  br label %return

if.end25:
  %19 = load i32, ptr %kind, align 4
  %cmp26 = icmp uge i32 %19, 3
  br i1 %cmp26, label %if.then28, label %if.end29

if.then28:
  store i32 0, ptr %retval, align 4
  br label %return

if.end29:
  %20 = load ptr, ptr %net.addr, align 8
  %21 = load i32, ptr %tensor, align 4
  %call30 = call i32 @check_shown(ptr %20, i32 %21)
  store i32 %call30, ptr %status, align 4
  %22 = load i32, ptr %status, align 4
  %tobool31 = icmp ne i32 %22, 0
  br i1 %tobool31, label %if.then34, label %lor.lhs.false

lor.lhs.false:
  %23 = load i32, ptr %kind, align 4
  %cmp32 = icmp eq i32 %23, 0
  br i1 %cmp32, label %if.then34, label %if.end35

if.then34:
  %24 = load i32, ptr %status, align 4
  store i32 %24, ptr %retval, align 4
  br label %return

if.end35:
  %25 = load ptr, ptr %net.addr, align 8
  %26 = load i32, ptr %tensor, align 4
  %call36 = call i32 @tensor_rank(ptr %25, i32 %26)
  %cmp37 = icmp eq i32 %call36, 0
  br i1 %cmp37, label %if.then39, label %if.end41

if.then39:
  %27 = load ptr, ptr %net.addr, align 8
  %call40 = call i32 @wrong(ptr %27, ptr @.str.57, ptr @.str.60, i64 0)
  store i32 %call40, ptr %retval, align 4
  br label %return

if.end41:
  %28 = load ptr, ptr %net.addr, align 8
  %29 = load i32, ptr %count, align 4
  %call42 = call i32 @is_single(ptr %28, i32 %29, i32 7)
  %tobool43 = icmp ne i32 %call42, 0
  br i1 %tobool43, label %if.end47, label %if.then44

if.then44:
  %30 = load ptr, ptr %net.addr, align 8
  %31 = load i32, ptr %count, align 4
  %conv45 = zext i32 %31 to i64
  %call46 = call i32 @wrong(ptr %30, ptr @.str.57, ptr @.str.61, i64 %conv45)
  store i32 %call46, ptr %retval, align 4
  br label %return

if.end47:
  %32 = load i32, ptr %kind, align 4
  %cmp48 = icmp eq i32 %32, 1
  br i1 %cmp48, label %if.then53, label %lor.lhs.false50

lor.lhs.false50:
  %33 = load i32, ptr %sizes, align 4
  %cmp51 = icmp eq i32 %33, -1
  br i1 %cmp51, label %if.then53, label %if.end54

if.then53:
  store i32 0, ptr %retval, align 4
  br label %return

if.end54:
  %34 = load ptr, ptr %net.addr, align 8
  %35 = load i32, ptr %tensor, align 4
  %call55 = call i32 @tensor_size(ptr %34, i32 %35, i32 0)
  %conv56 = zext i32 %call55 to i64
  store i64 %conv56, ptr %rows, align 8
  %36 = load ptr, ptr %net.addr, align 8
  %37 = load i32, ptr %tensor, align 4
  %call57 = call i32 @tensor_rank(ptr %36, i32 %37)
  %sub = sub i32 %call57, 1
  %conv58 = zext i32 %sub to i64
  store i64 %conv58, ptr %axes, align 8
  %38 = load ptr, ptr %net.addr, align 8
  %39 = load i32, ptr %sizes, align 4
  %call59 = call i32 @is_known(ptr %38, i32 %39)
  %tobool60 = icmp ne i32 %call59, 0
  br i1 %tobool60, label %land.lhs.true61, label %land.end

land.lhs.true61:
  %40 = load ptr, ptr %net.addr, align 8
  %41 = load i32, ptr %sizes, align 4
  %call62 = call i32 @tensor_type(ptr %40, i32 %41)
  %cmp63 = icmp eq i32 %call62, 7
  br i1 %cmp63, label %land.rhs, label %land.end

land.rhs:
  %42 = load ptr, ptr %net.addr, align 8
  %43 = load i32, ptr %sizes, align 4
  %call65 = call i64 @tensor_bytes(ptr %42, i32 %43)
  %div = udiv i64 %call65, 8
  %44 = load i64, ptr %rows, align 8
  %45 = load i64, ptr %axes, align 8
  %mul = mul i64 %44, %45
  %cmp66 = icmp eq i64 %div, %mul
  br label %land.end

land.end:
  %46 = phi i1 [ false, %land.lhs.true61 ], [ false, %if.end54 ], [ %cmp66, %land.rhs ]
  %land.ext = zext i1 %46 to i32
  store i32 %land.ext, ptr %fits, align 4
  %47 = load i32, ptr %fits, align 4
  %tobool68 = icmp ne i32 %47, 0
  br i1 %tobool68, label %cond.true, label %cond.false

cond.true:
  br label %cond.end

cond.false:
  %48 = load ptr, ptr %net.addr, align 8
  %49 = load i32, ptr %sizes, align 4
  %conv69 = zext i32 %49 to i64
  %call70 = call i32 @wrong(ptr %48, ptr @.str.57, ptr @.str.62, i64 %conv69)
  br label %cond.end

cond.end:
  %cond = phi i32 [ 0, %cond.true ], [ %call70, %cond.false ]
  store i32 %cond, ptr %retval, align 4
  br label %return

return:
  %50 = load i32, ptr %retval, align 4
  ret i32 %50
}

define internal i32 @check_ranges(ptr %net) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %n = alloca i32, align 4
  %range = alloca ptr, align 8
  %from = alloca i64, align 8
  %to = alloca i64, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %0 = load i32, ptr %n, align 4
  %1 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 7
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %2 = load i32, ptr %count, align 8
  %cmp = icmp ult i32 %0, %2
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load i32, ptr %n, align 4
  %call = call ptr @entry(ptr %3, i32 7, i32 %4, i32 4)
  store ptr %call, ptr %range, align 8
  %5 = load ptr, ptr %range, align 8
  %add.ptr = getelementptr inbounds i8, ptr %5, i64 0
  %call1 = call i64 @size_at(ptr %add.ptr)
  store i64 %call1, ptr %from, align 8
  %6 = load ptr, ptr %range, align 8
  %add.ptr2 = getelementptr inbounds i8, ptr %6, i64 8
  %call3 = call i64 @size_at(ptr %add.ptr2)
  store i64 %call3, ptr %to, align 8
  %7 = load i64, ptr %from, align 8
  %8 = load i64, ptr %to, align 8
  %cmp4 = icmp ugt i64 %7, %8
  br i1 %cmp4, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %9 = load i64, ptr %to, align 8
  %10 = load ptr, ptr %net.addr, align 8
  %dram_bytes = getelementptr inbounds %struct.vdla, ptr %10, i32 0, i32 4
  %11 = load i64, ptr %dram_bytes, align 8
  %cmp5 = icmp ugt i64 %9, %11
  br i1 %cmp5, label %if.then, label %if.end

if.then:
  %12 = load ptr, ptr %net.addr, align 8
  %13 = load i64, ptr %to, align 8
  %call6 = call i32 @wrong(ptr %12, ptr @.str.63, ptr @.str.64, i64 %13)
  store i32 %call6, ptr %retval, align 4
  br label %return

if.end:
  br label %for.inc

for.inc:
  %14 = load i32, ptr %n, align 4
  %inc = add i32 %14, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %15 = load i32, ptr %retval, align 4
  ret i32 %15
}

define internal i32 @check_step(ptr %net, i32 %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %kind = alloca i32, align 4
  %all = alloca i32, align 4
  %first = alloca i32, align 4
  %args = alloca i32, align 4
  %arg = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_word(ptr %0, i32 %1, i32 0)
  store i32 %call, ptr %kind, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 5
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %3 = load i32, ptr %count, align 8
  store i32 %3, ptr %all, align 4
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %step.addr, align 4
  %call1 = call i32 @step_word(ptr %4, i32 %5, i32 2)
  store i32 %call1, ptr %first, align 4
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load i32, ptr %step.addr, align 4
  %call2 = call i32 @step_word(ptr %6, i32 %7, i32 3)
  store i32 %call2, ptr %args, align 4
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load ptr, ptr %net.addr, align 8
  %10 = load i32, ptr %step.addr, align 4
  %call3 = call i32 @step_word(ptr %9, i32 %10, i32 1)
  %call4 = call i32 @is_text(ptr %8, i32 %call3)
  %tobool = icmp ne i32 %call4, 0
  br i1 %tobool, label %if.end, label %if.then

if.then:
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load i32, ptr %step.addr, align 4
  %conv = zext i32 %12 to i64
  %call5 = call i32 @wrong(ptr %11, ptr @.str.65, ptr @.str.44, i64 %conv)
  store i32 %call5, ptr %retval, align 4
  br label %return

if.end:
  %13 = load i32, ptr %first, align 4
  %14 = load i32, ptr %all, align 4
  %cmp = icmp ugt i32 %13, %14
  br i1 %cmp, label %if.then9, label %lor.lhs.false

lor.lhs.false:
  %15 = load i32, ptr %args, align 4
  %16 = load i32, ptr %all, align 4
  %17 = load i32, ptr %first, align 4
  %sub = sub i32 %16, %17
  %cmp7 = icmp ugt i32 %15, %sub
  br i1 %cmp7, label %if.then9, label %if.end12

if.then9:
  %18 = load ptr, ptr %net.addr, align 8
  %19 = load i32, ptr %args, align 4
  %conv10 = zext i32 %19 to i64
  %call11 = call i32 @wrong(ptr %18, ptr @.str.65, ptr @.str.66, i64 %conv10)
  store i32 %call11, ptr %retval, align 4
  br label %return

if.end12:
  store i32 0, ptr %arg, align 4
  br label %for.cond

for.cond:
  %20 = load i32, ptr %arg, align 4
  %21 = load i32, ptr %args, align 4
  %cmp13 = icmp ult i32 %20, %21
  br i1 %cmp13, label %for.body, label %for.end

for.body:
  %22 = load ptr, ptr %net.addr, align 8
  %23 = load ptr, ptr %net.addr, align 8
  %24 = load i32, ptr %step.addr, align 4
  %25 = load i32, ptr %arg, align 4
  %call15 = call i32 @step_arg(ptr %23, i32 %24, i32 %25)
  %call16 = call i32 @is_known(ptr %22, i32 %call15)
  %tobool17 = icmp ne i32 %call16, 0
  br i1 %tobool17, label %if.end20, label %if.then18

if.then18:
  %26 = load ptr, ptr %net.addr, align 8
  %27 = load i32, ptr %step.addr, align 4
  %call19 = call i32 @fail_at_step(ptr %26, i32 1, i32 %27, ptr @.str.66, ptr @.str.67)
  store i32 %call19, ptr %retval, align 4
  br label %return

if.end20:
  br label %for.inc

for.inc:
  %28 = load i32, ptr %arg, align 4
  %inc = add i32 %28, 1
  store i32 %inc, ptr %arg, align 4
  br label %for.cond

for.end:
  %29 = load i32, ptr %kind, align 4
  switch i32 %29, label %sw.default [
    i32 0, label %sw.bb
    i32 1, label %sw.bb22
    i32 6, label %sw.bb24
    i32 7, label %sw.bb26
    i32 8, label %sw.bb30
    i32 9, label %sw.bb30
    i32 10, label %sw.bb30
    i32 11, label %sw.bb32
    i32 2, label %sw.bb33
    i32 3, label %sw.bb35
    i32 4, label %sw.bb35
  ]

sw.bb:
  %30 = load ptr, ptr %net.addr, align 8
  %31 = load i32, ptr %step.addr, align 4
  %call21 = call i32 @check_host(ptr %30, i32 %31)
  store i32 %call21, ptr %retval, align 4
  br label %return

sw.bb22:
  %32 = load ptr, ptr %net.addr, align 8
  %33 = load i32, ptr %step.addr, align 4
  %call23 = call i32 @check_program(ptr %32, i32 %33)
  store i32 %call23, ptr %retval, align 4
  br label %return

sw.bb24:
  %34 = load ptr, ptr %net.addr, align 8
  %35 = load i32, ptr %step.addr, align 4
  %call25 = call i32 @check_copy(ptr %34, i32 %35)
  store i32 %call25, ptr %retval, align 4
  br label %return

sw.bb26:
  %36 = load i32, ptr %args, align 4
  %cmp27 = icmp eq i32 %36, 1
  br i1 %cmp27, label %cond.true, label %cond.false

cond.true:
  br label %cond.end

cond.false:
  %37 = load ptr, ptr %net.addr, align 8
  %38 = load i32, ptr %step.addr, align 4
  %call29 = call i32 @fail_at_step(ptr %37, i32 1, i32 %38, ptr @.str.68, ptr @.str.35)
  br label %cond.end

cond.end:
  %cond = phi i32 [ 0, %cond.true ], [ %call29, %cond.false ]
  store i32 %cond, ptr %retval, align 4
  br label %return

sw.bb30:
  %39 = load ptr, ptr %net.addr, align 8
  %40 = load i32, ptr %step.addr, align 4
  %41 = load i32, ptr %kind, align 4
  %call31 = call i32 @check_jump(ptr %39, i32 %40, i32 %41)
  store i32 %call31, ptr %retval, align 4
  br label %return

sw.bb32:
  store i32 0, ptr %retval, align 4
  br label %return

sw.bb33:
  %42 = load ptr, ptr %net.addr, align 8
  %43 = load i32, ptr %step.addr, align 4
  %call34 = call i32 @fail_at_step(ptr %42, i32 3, i32 %43, ptr @.str.69, ptr @.str.70)
  store i32 %call34, ptr %retval, align 4
  br label %return

sw.bb35:
  %44 = load ptr, ptr %net.addr, align 8
  %45 = load i32, ptr %step.addr, align 4
  %call36 = call i32 @fail_at_step(ptr %44, i32 3, i32 %45, ptr @.str.69, ptr @.str.71)
  store i32 %call36, ptr %retval, align 4
  br label %return

sw.default:
  %46 = load ptr, ptr %net.addr, align 8
  %47 = load i32, ptr %step.addr, align 4
  %call37 = call i32 @fail_at_step(ptr %46, i32 3, i32 %47, ptr @.str.69, ptr @.str.72)
  store i32 %call37, ptr %retval, align 4
  br label %return

return:
  %48 = load i32, ptr %retval, align 4
  ret i32 %48
}

define i32 @vdla_open(ptr %memory, i64 %memory_bytes, ptr %module, i64 %module_bytes, ptr %code, ptr %board, ptr %opened) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %memory.addr = alloca ptr, align 8
  %memory_bytes.addr = alloca i64, align 8
  %module.addr = alloca ptr, align 8
  %module_bytes.addr = alloca i64, align 8
  %code.addr = alloca ptr, align 8
  %board.addr = alloca ptr, align 8
  %opened.addr = alloca ptr, align 8
  %net = alloca ptr, align 8
  %status = alloca i32, align 4
  store ptr %memory, ptr %memory.addr, align 8
  store i64 %memory_bytes, ptr %memory_bytes.addr, align 8
  store ptr %module, ptr %module.addr, align 8
  store i64 %module_bytes, ptr %module_bytes.addr, align 8
  store ptr %code, ptr %code.addr, align 8
  store ptr %board, ptr %board.addr, align 8
  store ptr %opened, ptr %opened.addr, align 8
  %0 = load ptr, ptr %opened.addr, align 8
  store ptr null, ptr %0, align 8
  %1 = load ptr, ptr %memory.addr, align 8
  %cmp = icmp eq ptr %1, null
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %2 = load ptr, ptr %memory.addr, align 8
  %3 = ptrtoint ptr %2 to i64
  %rem = urem i64 %3, 64
  %tobool = icmp ne i64 %rem, 0
  br i1 %tobool, label %if.then, label %lor.lhs.false1

lor.lhs.false1:
  %4 = load i64, ptr %memory_bytes.addr, align 8
  %cmp2 = icmp ult i64 %4, 1472
  br i1 %cmp2, label %if.then, label %if.end

if.then:
  store i32 4, ptr %retval, align 4
  br label %return

if.end:
  %5 = load ptr, ptr %memory.addr, align 8
  %6 = load ptr, ptr %opened.addr, align 8
  store ptr %5, ptr %6, align 8
  store ptr %5, ptr %net, align 8
  %7 = load ptr, ptr %net, align 8
  call void @llvm.memset.p0.i64(ptr align 8 %7, i8 0, i64 1448, i1 false)
  %8 = load ptr, ptr %module.addr, align 8
  %9 = load ptr, ptr %net, align 8
  %bytes = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 1
  store ptr %8, ptr %bytes, align 8
  %10 = load ptr, ptr %code.addr, align 8
  %11 = load ptr, ptr %net, align 8
  %code3 = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 8
  store ptr %10, ptr %code3, align 8
  %12 = load ptr, ptr %net, align 8
  %13 = load i64, ptr %module_bytes.addr, align 8
  %call = call i32 @read_module(ptr %12, i64 %13)
  store i32 %call, ptr %status, align 4
  %14 = load i32, ptr %status, align 4
  %tobool4 = icmp ne i32 %14, 0
  br i1 %tobool4, label %if.end7, label %if.then5

if.then5:
  %15 = load ptr, ptr %net, align 8
  %call6 = call i32 @check_module(ptr %15)
  store i32 %call6, ptr %status, align 4
  br label %if.end7

if.end7:
  %16 = load i32, ptr %status, align 4
  %tobool8 = icmp ne i32 %16, 0
  br i1 %tobool8, label %if.then9, label %if.end10

if.then9:
  %17 = load i32, ptr %status, align 4
  store i32 %17, ptr %retval, align 4
  br label %return

if.end10:
  %18 = load ptr, ptr %net, align 8
  %programs = getelementptr inbounds %struct.vdla, ptr %18, i32 0, i32 18
  %19 = load i32, ptr %programs, align 4
  %tobool11 = icmp ne i32 %19, 0
  br i1 %tobool11, label %land.lhs.true, label %if.end15

land.lhs.true:
  %20 = load ptr, ptr %board.addr, align 8
  %cmp12 = icmp eq ptr %20, null
  br i1 %cmp12, label %if.then13, label %if.end15

if.then13:
  %21 = load ptr, ptr %net, align 8
  %call14 = call i32 @fail_with(ptr %21, i32 3, ptr @.str.15, ptr @.str.16, ptr @.str.17)
  store i32 %call14, ptr %retval, align 4
  br label %return

if.end15:
  %22 = load ptr, ptr %net, align 8
  %programs16 = getelementptr inbounds %struct.vdla, ptr %22, i32 0, i32 18
  %23 = load i32, ptr %programs16, align 4
  %tobool17 = icmp ne i32 %23, 0
  br i1 %tobool17, label %cond.true, label %cond.false

cond.true:
  %24 = load ptr, ptr %board.addr, align 8
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi ptr [ %24, %cond.true ], [ null, %cond.false ]
  %25 = load ptr, ptr %net, align 8
  %board18 = getelementptr inbounds %struct.vdla, ptr %25, i32 0, i32 9
  store ptr %cond, ptr %board18, align 8
  %26 = load ptr, ptr %net, align 8
  %27 = load i64, ptr %memory_bytes.addr, align 8
  %call19 = call i32 @lay_out(ptr %26, i64 %27)
  store i32 %call19, ptr %retval, align 4
  br label %return

return:
  %28 = load i32, ptr %retval, align 4
  ret i32 %28
}

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg)

define internal i32 @lay_out(ptr %net, i64 %memory_bytes) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %memory_bytes.addr = alloca i64, align 8
  %stay = alloca i32, align 4
  %image = alloca i64, align 8
  %most = alloca i64, align 8
  %words = alloca %struct.words, align 8
  %memory = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  store i64 %memory_bytes, ptr %memory_bytes.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %call = call i32 @constants_can_stay(ptr %0)
  store i32 %call, ptr %stay, align 4
  %1 = load i32, ptr %stay, align 4
  %tobool = icmp ne i32 %1, 0
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %2 = load ptr, ptr %net.addr, align 8
  %sections = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 3
  %3 = load ptr, ptr %sections, align 8
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi ptr [ %3, %cond.true ], [ null, %cond.false ]
  %4 = load ptr, ptr %net.addr, align 8
  %constants = getelementptr inbounds %struct.vdla, ptr %4, i32 0, i32 10
  store ptr %cond, ptr %constants, align 8
  %5 = load i32, ptr %stay, align 4
  %tobool1 = icmp ne i32 %5, 0
  br i1 %tobool1, label %cond.true2, label %cond.false3

cond.true2:
  %6 = load ptr, ptr %net.addr, align 8
  %constant_bytes = getelementptr inbounds %struct.vdla, ptr %6, i32 0, i32 5
  %7 = load i64, ptr %constant_bytes, align 8
  %div = udiv i64 %7, 64
  %mul = mul i64 %div, 64
  br label %cond.end4

cond.false3:
  br label %cond.end4

cond.end4:
  %cond5 = phi i64 [ %mul, %cond.true2 ], [ 0, %cond.false3 ]
  %8 = load ptr, ptr %net.addr, align 8
  %first = getelementptr inbounds %struct.vdla, ptr %8, i32 0, i32 12
  store i64 %cond5, ptr %first, align 8
  %9 = load ptr, ptr %net.addr, align 8
  %board = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 9
  %10 = load ptr, ptr %board, align 8
  %tobool6 = icmp ne ptr %10, null
  br i1 %tobool6, label %cond.true7, label %cond.false8

cond.true7:
  br label %cond.end10

cond.false8:
  %11 = load ptr, ptr %net.addr, align 8
  %dram_bytes = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 4
  %12 = load i64, ptr %dram_bytes, align 8
  %13 = load ptr, ptr %net.addr, align 8
  %first9 = getelementptr inbounds %struct.vdla, ptr %13, i32 0, i32 12
  %14 = load i64, ptr %first9, align 8
  %sub = sub i64 %12, %14
  br label %cond.end10

cond.end10:
  %cond11 = phi i64 [ 0, %cond.true7 ], [ %sub, %cond.false8 ]
  store i64 %cond11, ptr %image, align 8
  %15 = load ptr, ptr %net.addr, align 8
  %most_args = getelementptr inbounds %struct.vdla, ptr %15, i32 0, i32 19
  %16 = load i32, ptr %most_args, align 8
  %add = add i32 %16, 1
  %conv = zext i32 %add to i64
  %mul12 = mul i64 %conv, 8
  %add13 = add i64 %mul12, 63
  %div14 = udiv i64 %add13, 64
  %mul15 = mul i64 %div14, 64
  %add16 = add i64 1472, %mul15
  %17 = load ptr, ptr %net.addr, align 8
  %most_saved = getelementptr inbounds %struct.vdla, ptr %17, i32 0, i32 20
  %18 = load i64, ptr %most_saved, align 8
  %mul17 = mul i64 %18, 1000
  %add18 = add i64 %add16, %mul17
  %sub19 = sub i64 9223372036854775807, %add18
  store i64 %sub19, ptr %most, align 8
  %19 = load i64, ptr %image, align 8
  %20 = load i64, ptr %most, align 8
  %cmp = icmp ugt i64 %19, %20
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %21 = load ptr, ptr %net.addr, align 8
  %22 = load i64, ptr %image, align 8
  %call21 = call i32 @fail(ptr %21, i32 4, ptr @.str.6, ptr @.str.89, i64 %22)
  store i32 %call21, ptr %retval, align 4
  br label %return

if.end:
  %23 = load i64, ptr %image, align 8
  %add22 = add i64 %23, 63
  %div23 = udiv i64 %add22, 64
  %mul24 = mul i64 %div23, 64
  %add25 = add i64 1472, %mul24
  %24 = load ptr, ptr %net.addr, align 8
  %most_args26 = getelementptr inbounds %struct.vdla, ptr %24, i32 0, i32 19
  %25 = load i32, ptr %most_args26, align 8
  %add27 = add i32 %25, 1
  %conv28 = zext i32 %add27 to i64
  %mul29 = mul i64 %conv28, 8
  %add30 = add i64 %mul29, 63
  %div31 = udiv i64 %add30, 64
  %mul32 = mul i64 %div31, 64
  %add33 = add i64 %add25, %mul32
  %26 = load ptr, ptr %net.addr, align 8
  %most_saved34 = getelementptr inbounds %struct.vdla, ptr %26, i32 0, i32 20
  %27 = load i64, ptr %most_saved34, align 8
  %mul35 = mul i64 %27, 1000
  %add36 = add i64 %add33, %mul35
  %28 = load ptr, ptr %net.addr, align 8
  %memory_bytes37 = getelementptr inbounds %struct.vdla, ptr %28, i32 0, i32 13
  store i64 %add36, ptr %memory_bytes37, align 8
  %29 = load i64, ptr %memory_bytes.addr, align 8
  %30 = load ptr, ptr %net.addr, align 8
  %memory_bytes38 = getelementptr inbounds %struct.vdla, ptr %30, i32 0, i32 13
  %31 = load i64, ptr %memory_bytes38, align 8
  %cmp39 = icmp ult i64 %29, %31
  br i1 %cmp39, label %if.then41, label %if.end43

if.then41:
  %32 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %32, ptr %words)
  call void @put(ptr %words, ptr @.str.90)
  %33 = load ptr, ptr %net.addr, align 8
  %memory_bytes42 = getelementptr inbounds %struct.vdla, ptr %33, i32 0, i32 13
  %34 = load i64, ptr %memory_bytes42, align 8
  call void @put_number(ptr %words, i64 %34)
  call void @put(ptr %words, ptr @.str.91)
  %35 = load i64, ptr %memory_bytes.addr, align 8
  call void @put_number(ptr %words, i64 %35)
  store i32 4, ptr %retval, align 4
  br label %return

if.end43:
  %36 = load ptr, ptr %net.addr, align 8
  %add.ptr = getelementptr inbounds i8, ptr %36, i64 1472
  store ptr %add.ptr, ptr %memory, align 8
  %37 = load ptr, ptr %memory, align 8
  %38 = load i64, ptr %image, align 8
  %add44 = add i64 %38, 63
  %div45 = udiv i64 %add44, 64
  %mul46 = mul i64 %div45, 64
  %add.ptr47 = getelementptr inbounds i8, ptr %37, i64 %mul46
  %39 = load ptr, ptr %net.addr, align 8
  %buffers = getelementptr inbounds %struct.vdla, ptr %39, i32 0, i32 14
  store ptr %add.ptr47, ptr %buffers, align 8
  %40 = load ptr, ptr %net.addr, align 8
  %buffers48 = getelementptr inbounds %struct.vdla, ptr %40, i32 0, i32 14
  %41 = load ptr, ptr %buffers48, align 8
  %42 = load ptr, ptr %net.addr, align 8
  %most_args49 = getelementptr inbounds %struct.vdla, ptr %42, i32 0, i32 19
  %43 = load i32, ptr %most_args49, align 8
  %add50 = add i32 %43, 1
  %conv51 = zext i32 %add50 to i64
  %mul52 = mul i64 %conv51, 8
  %add53 = add i64 %mul52, 63
  %div54 = udiv i64 %add53, 64
  %mul55 = mul i64 %div54, 64
  %add.ptr56 = getelementptr inbounds i8, ptr %41, i64 %mul55
  %44 = load ptr, ptr %net.addr, align 8
  %frames = getelementptr inbounds %struct.vdla, ptr %44, i32 0, i32 15
  store ptr %add.ptr56, ptr %frames, align 8
  %45 = load ptr, ptr %net.addr, align 8
  %board57 = getelementptr inbounds %struct.vdla, ptr %45, i32 0, i32 9
  %46 = load ptr, ptr %board57, align 8
  %tobool58 = icmp ne ptr %46, null
  br i1 %tobool58, label %if.then59, label %if.end61

if.then59:
  %47 = load ptr, ptr %net.addr, align 8
  %call60 = call i32 @open_board(ptr %47)
  store i32 %call60, ptr %retval, align 4
  br label %return

if.end61:
  %48 = load ptr, ptr %memory, align 8
  %49 = load ptr, ptr %net.addr, align 8
  %image62 = getelementptr inbounds %struct.vdla, ptr %49, i32 0, i32 11
  store ptr %48, ptr %image62, align 8
  %50 = load ptr, ptr %memory, align 8
  %51 = load i64, ptr %image, align 8
  call void @llvm.memset.p0.i64(ptr align 1 %50, i8 0, i64 %51, i1 false)
  %52 = load i32, ptr %stay, align 4
  %tobool63 = icmp ne i32 %52, 0
  br i1 %tobool63, label %if.end67, label %if.then64

if.then64:
  %53 = load ptr, ptr %memory, align 8
  %54 = load ptr, ptr %net.addr, align 8
  %sections65 = getelementptr inbounds %struct.vdla, ptr %54, i32 0, i32 3
  %55 = load ptr, ptr %sections65, align 8
  %56 = load ptr, ptr %net.addr, align 8
  %constant_bytes66 = getelementptr inbounds %struct.vdla, ptr %56, i32 0, i32 5
  %57 = load i64, ptr %constant_bytes66, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %53, ptr align 1 %55, i64 %57, i1 false)
  br label %if.end67

if.end67:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %58 = load i32, ptr %retval, align 4
  ret i32 %58
}

define i64 @vdla_memory(ptr %net) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %tobool = icmp ne ptr %0, null
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %1 = load ptr, ptr %net.addr, align 8
  %memory_bytes = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 13
  %2 = load i64, ptr %memory_bytes, align 8
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi i64 [ %2, %cond.true ], [ 1472, %cond.false ]
  ret i64 %cond
}

define ptr @vdla_error(ptr %net) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %tobool = icmp ne ptr %0, null
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %1 = load ptr, ptr %net.addr, align 8
  %error = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 0
  %arraydecay = getelementptr inbounds [224 x i8], ptr %error, i64 0, i64 0
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi ptr [ %arraydecay, %cond.true ], [ @.str.18, %cond.false ]
  ret ptr %cond
}

define i32 @vdla_describe(ptr %net, ptr %description) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %description.addr = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  store ptr %description, ptr %description.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 2
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %1 = load i32, ptr %count, align 8
  %2 = load ptr, ptr %description.addr, align 8
  %inputs = getelementptr inbounds %struct.vdla_description, ptr %2, i32 0, i32 0
  store i32 %1, ptr %inputs, align 4
  %3 = load ptr, ptr %net.addr, align 8
  %lists1 = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 2
  %arrayidx2 = getelementptr inbounds [10 x %struct.list], ptr %lists1, i64 0, i64 3
  %count3 = getelementptr inbounds %struct.list, ptr %arrayidx2, i32 0, i32 1
  %4 = load i32, ptr %count3, align 8
  %5 = load ptr, ptr %description.addr, align 8
  %outputs = getelementptr inbounds %struct.vdla_description, ptr %5, i32 0, i32 1
  store i32 %4, ptr %outputs, align 4
  %6 = load ptr, ptr %net.addr, align 8
  %lists4 = getelementptr inbounds %struct.vdla, ptr %6, i32 0, i32 2
  %arrayidx5 = getelementptr inbounds [10 x %struct.list], ptr %lists4, i64 0, i64 6
  %count6 = getelementptr inbounds %struct.list, ptr %arrayidx5, i32 0, i32 1
  %7 = load i32, ptr %count6, align 8
  %8 = load ptr, ptr %description.addr, align 8
  %functions = getelementptr inbounds %struct.vdla_description, ptr %8, i32 0, i32 2
  store i32 %7, ptr %functions, align 4
  %9 = load ptr, ptr %net.addr, align 8
  %programs = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 18
  %10 = load i32, ptr %programs, align 4
  %11 = load ptr, ptr %description.addr, align 8
  %programs7 = getelementptr inbounds %struct.vdla_description, ptr %11, i32 0, i32 3
  store i32 %10, ptr %programs7, align 4
  %12 = load ptr, ptr %net.addr, align 8
  %isa = getelementptr inbounds %struct.vdla, ptr %12, i32 0, i32 6
  %13 = load i32, ptr %isa, align 8
  %14 = load ptr, ptr %description.addr, align 8
  %isa8 = getelementptr inbounds %struct.vdla_description, ptr %14, i32 0, i32 4
  store i32 %13, ptr %isa8, align 4
  %15 = load ptr, ptr %net.addr, align 8
  %config = getelementptr inbounds %struct.vdla, ptr %15, i32 0, i32 7
  %16 = load i32, ptr %config, align 4
  %17 = load ptr, ptr %description.addr, align 8
  %config9 = getelementptr inbounds %struct.vdla_description, ptr %17, i32 0, i32 5
  store i32 %16, ptr %config9, align 4
  ret i32 0
}

define i32 @vdla_input(ptr %net, i32 %number, ptr %tensor) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %number.addr = alloca i32, align 4
  %tensor.addr = alloca ptr, align 8
  %own = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %number, ptr %number.addr, align 4
  store ptr %tensor, ptr %tensor.addr, align 8
  %0 = load i32, ptr %number.addr, align 4
  %1 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 2
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %2 = load i32, ptr %count, align 8
  %cmp = icmp uge i32 %0, %2
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load i32, ptr %number.addr, align 4
  %conv = zext i32 %4 to i64
  %call = call i32 @fail(ptr %3, i32 6, ptr @.str.19, ptr @.str.20, i64 %conv)
  store i32 %call, ptr %retval, align 4
  br label %return

if.end:
  %5 = load ptr, ptr %tensor.addr, align 8
  call void @llvm.memset.p0.i64(ptr align 8 %5, i8 0, i64 112, i1 false)
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load i32, ptr %number.addr, align 4
  %mul = mul i32 2, %7
  %add = add i32 %mul, 0
  %call1 = call i32 @word(ptr %6, i32 2, i32 %add)
  store i32 %call1, ptr %own, align 4
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i32, ptr %own, align 4
  %10 = load ptr, ptr %tensor.addr, align 8
  call void @show(ptr %8, i32 %9, ptr %10)
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load ptr, ptr %net.addr, align 8
  %13 = load i32, ptr %own, align 4
  %call2 = call i32 @tensor_word(ptr %12, i32 %13, i32 6)
  %call3 = call ptr @text(ptr %11, i32 %call2)
  %14 = load ptr, ptr %tensor.addr, align 8
  %name = getelementptr inbounds %struct.vdla_tensor, ptr %14, i32 0, i32 0
  store ptr %call3, ptr %name, align 8
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %15 = load i32, ptr %retval, align 4
  ret i32 %15
}

define internal i32 @word(ptr %net, i32 %list, i32 %index) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %list.addr = alloca i32, align 4
  %index.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %list, ptr %list.addr, align 4
  store i32 %index, ptr %index.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 2
  %1 = load i32, ptr %list.addr, align 4
  %idxprom = sext i32 %1 to i64
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 %idxprom
  %first = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 0
  %2 = load ptr, ptr %first, align 8
  %3 = load i32, ptr %index.addr, align 4
  %conv = zext i32 %3 to i64
  %mul = mul i64 4, %conv
  %add.ptr = getelementptr inbounds i8, ptr %2, i64 %mul
  %call = call i32 @word_at(ptr %add.ptr)
  ret i32 %call
}

define internal void @show(ptr %net, i32 %tensor, ptr %shown) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %shown.addr = alloca ptr, align 8
  %axis = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  store ptr %shown, ptr %shown.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call ptr @tensor_data(ptr %0, i32 %1)
  %2 = load ptr, ptr %shown.addr, align 8
  %data = getelementptr inbounds %struct.vdla_tensor, ptr %2, i32 0, i32 1
  store ptr %call, ptr %data, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load i32, ptr %tensor.addr, align 4
  %call1 = call i64 @tensor_bytes(ptr %3, i32 %4)
  %5 = load ptr, ptr %shown.addr, align 8
  %bytes = getelementptr inbounds %struct.vdla_tensor, ptr %5, i32 0, i32 2
  store i64 %call1, ptr %bytes, align 8
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load i32, ptr %tensor.addr, align 4
  %call2 = call i32 @tensor_type(ptr %6, i32 %7)
  %8 = load ptr, ptr %shown.addr, align 8
  %type = getelementptr inbounds %struct.vdla_tensor, ptr %8, i32 0, i32 3
  store i32 %call2, ptr %type, align 8
  %9 = load ptr, ptr %net.addr, align 8
  %10 = load i32, ptr %tensor.addr, align 4
  %call3 = call i32 @tensor_rank(ptr %9, i32 %10)
  %11 = load ptr, ptr %shown.addr, align 8
  %rank = getelementptr inbounds %struct.vdla_tensor, ptr %11, i32 0, i32 4
  store i32 %call3, ptr %rank, align 4
  store i32 0, ptr %axis, align 4
  br label %for.cond

for.cond:
  %12 = load i32, ptr %axis, align 4
  %13 = load ptr, ptr %shown.addr, align 8
  %rank4 = getelementptr inbounds %struct.vdla_tensor, ptr %13, i32 0, i32 4
  %14 = load i32, ptr %rank4, align 4
  %cmp = icmp ult i32 %12, %14
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %15 = load ptr, ptr %net.addr, align 8
  %16 = load i32, ptr %tensor.addr, align 4
  %17 = load i32, ptr %axis, align 4
  %call5 = call i32 @tensor_size(ptr %15, i32 %16, i32 %17)
  %conv = zext i32 %call5 to i64
  %18 = load ptr, ptr %shown.addr, align 8
  %shape = getelementptr inbounds %struct.vdla_tensor, ptr %18, i32 0, i32 5
  %19 = load i32, ptr %axis, align 4
  %idxprom = zext i32 %19 to i64
  %arrayidx = getelementptr inbounds [8 x i64], ptr %shape, i64 0, i64 %idxprom
  store i64 %conv, ptr %arrayidx, align 8
  br label %for.inc

for.inc:
  %20 = load i32, ptr %axis, align 4
  %inc = add i32 %20, 1
  store i32 %inc, ptr %axis, align 4
  br label %for.cond

for.end:
  ret void
}

define internal i32 @tensor_word(ptr %net, i32 %tensor, i32 %which) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %which.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  store i32 %which, ptr %which.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call ptr @entry(ptr %0, i32 0, i32 %1, i32 7)
  %2 = load i32, ptr %which.addr, align 4
  %mul = mul nsw i32 4, %2
  %idx.ext = sext i32 %mul to i64
  %add.ptr = getelementptr inbounds i8, ptr %call, i64 %idx.ext
  %call1 = call i32 @word_at(ptr %add.ptr)
  ret i32 %call1
}

define i32 @vdla_output(ptr %net, i32 %number, ptr %tensor) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %number.addr = alloca i32, align 4
  %tensor.addr = alloca ptr, align 8
  %output = alloca ptr, align 8
  %kind = alloca i32, align 4
  %condition = alloca i32, align 4
  %sizes = alloca i32, align 4
  %most = alloca i64, align 8
  %each = alloca i64, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %number, ptr %number.addr, align 4
  store ptr %tensor, ptr %tensor.addr, align 8
  %0 = load i32, ptr %number.addr, align 4
  %1 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 3
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %2 = load i32, ptr %count, align 8
  %cmp = icmp uge i32 %0, %2
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load i32, ptr %number.addr, align 4
  %conv = zext i32 %4 to i64
  %call = call i32 @fail(ptr %3, i32 6, ptr @.str.21, ptr @.str.22, i64 %conv)
  store i32 %call, ptr %retval, align 4
  br label %return

if.end:
  %5 = load ptr, ptr %net.addr, align 8
  %6 = load i32, ptr %number.addr, align 4
  %call1 = call ptr @entry(ptr %5, i32 3, i32 %6, i32 6)
  store ptr %call1, ptr %output, align 8
  %7 = load ptr, ptr %output, align 8
  %add.ptr = getelementptr inbounds i8, ptr %7, i64 4
  %call2 = call i32 @word_at(ptr %add.ptr)
  store i32 %call2, ptr %kind, align 4
  %8 = load ptr, ptr %output, align 8
  %add.ptr3 = getelementptr inbounds i8, ptr %8, i64 20
  %call4 = call i32 @word_at(ptr %add.ptr3)
  store i32 %call4, ptr %condition, align 4
  %9 = load ptr, ptr %output, align 8
  %add.ptr5 = getelementptr inbounds i8, ptr %9, i64 16
  %call6 = call i32 @word_at(ptr %add.ptr5)
  store i32 %call6, ptr %sizes, align 4
  %10 = load ptr, ptr %tensor.addr, align 8
  call void @llvm.memset.p0.i64(ptr align 8 %10, i8 0, i64 112, i1 false)
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load ptr, ptr %output, align 8
  %add.ptr7 = getelementptr inbounds i8, ptr %12, i64 0
  %call8 = call i32 @word_at(ptr %add.ptr7)
  %call9 = call ptr @text(ptr %11, i32 %call8)
  %13 = load ptr, ptr %tensor.addr, align 8
  %name = getelementptr inbounds %struct.vdla_tensor, ptr %13, i32 0, i32 0
  store ptr %call9, ptr %name, align 8
  %14 = load i32, ptr %condition, align 4
  %cmp10 = icmp ne i32 %14, -1
  br i1 %cmp10, label %land.lhs.true, label %if.end17

land.lhs.true:
  %15 = load ptr, ptr %net.addr, align 8
  %16 = load i32, ptr %condition, align 4
  %call12 = call ptr @tensor_data(ptr %15, i32 %16)
  %17 = load i8, ptr %call12, align 1
  %conv13 = zext i8 %17 to i32
  %cmp14 = icmp eq i32 %conv13, 0
  br i1 %cmp14, label %if.then16, label %if.end17

if.then16:
  store i32 0, ptr %retval, align 4
  br label %return

if.end17:
  %18 = load i32, ptr %kind, align 4
  %cmp18 = icmp eq i32 %18, 4
  %conv19 = zext i1 %cmp18 to i32
  %19 = load ptr, ptr %tensor.addr, align 8
  %is_list = getelementptr inbounds %struct.vdla_tensor, ptr %19, i32 0, i32 7
  store i32 %conv19, ptr %is_list, align 8
  %20 = load i32, ptr %kind, align 4
  %cmp20 = icmp uge i32 %20, 3
  br i1 %cmp20, label %if.then22, label %if.end23

if.then22:
  store i32 0, ptr %retval, align 4
  br label %return

if.end23:
  %21 = load ptr, ptr %net.addr, align 8
  %22 = load ptr, ptr %output, align 8
  %add.ptr24 = getelementptr inbounds i8, ptr %22, i64 8
  %call25 = call i32 @word_at(ptr %add.ptr24)
  %23 = load ptr, ptr %tensor.addr, align 8
  call void @show(ptr %21, i32 %call25, ptr %23)
  %24 = load i32, ptr %kind, align 4
  %cmp26 = icmp eq i32 %24, 0
  br i1 %cmp26, label %if.then28, label %if.end29

if.then28:
  store i32 0, ptr %retval, align 4
  br label %return

if.end29:
  %25 = load ptr, ptr %tensor.addr, align 8
  %shape = getelementptr inbounds %struct.vdla_tensor, ptr %25, i32 0, i32 5
  %arrayidx30 = getelementptr inbounds [8 x i64], ptr %shape, i64 0, i64 0
  %26 = load i64, ptr %arrayidx30, align 8
  store i64 %26, ptr %most, align 8
  %27 = load ptr, ptr %tensor.addr, align 8
  %bytes = getelementptr inbounds %struct.vdla_tensor, ptr %27, i32 0, i32 2
  %28 = load i64, ptr %bytes, align 8
  %29 = load i64, ptr %most, align 8
  %tobool = icmp ne i64 %29, 0
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %30 = load i64, ptr %most, align 8
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi i64 [ %30, %cond.true ], [ 1, %cond.false ]
  %div = udiv i64 %28, %cond
  store i64 %div, ptr %each, align 8
  %31 = load ptr, ptr %net.addr, align 8
  %32 = load ptr, ptr %output, align 8
  %add.ptr31 = getelementptr inbounds i8, ptr %32, i64 12
  %call32 = call i32 @word_at(ptr %add.ptr31)
  %33 = load i64, ptr %most, align 8
  %call33 = call i64 @count_of(ptr %31, i32 %call32, i64 %33)
  %34 = load ptr, ptr %tensor.addr, align 8
  %shape34 = getelementptr inbounds %struct.vdla_tensor, ptr %34, i32 0, i32 5
  %arrayidx35 = getelementptr inbounds [8 x i64], ptr %shape34, i64 0, i64 0
  store i64 %call33, ptr %arrayidx35, align 8
  %35 = load i64, ptr %each, align 8
  %36 = load ptr, ptr %tensor.addr, align 8
  %shape36 = getelementptr inbounds %struct.vdla_tensor, ptr %36, i32 0, i32 5
  %arrayidx37 = getelementptr inbounds [8 x i64], ptr %shape36, i64 0, i64 0
  %37 = load i64, ptr %arrayidx37, align 8
  %mul = mul i64 %35, %37
  %38 = load ptr, ptr %tensor.addr, align 8
  %bytes38 = getelementptr inbounds %struct.vdla_tensor, ptr %38, i32 0, i32 2
  store i64 %mul, ptr %bytes38, align 8
  %39 = load i32, ptr %kind, align 4
  %cmp39 = icmp eq i32 %39, 2
  %conv40 = zext i1 %cmp39 to i32
  %40 = load ptr, ptr %tensor.addr, align 8
  %is_list41 = getelementptr inbounds %struct.vdla_tensor, ptr %40, i32 0, i32 7
  store i32 %conv40, ptr %is_list41, align 8
  %41 = load ptr, ptr %tensor.addr, align 8
  %is_list42 = getelementptr inbounds %struct.vdla_tensor, ptr %41, i32 0, i32 7
  %42 = load i32, ptr %is_list42, align 8
  %tobool43 = icmp ne i32 %42, 0
  br i1 %tobool43, label %land.lhs.true44, label %if.end50

land.lhs.true44:
  %43 = load i32, ptr %sizes, align 4
  %cmp45 = icmp ne i32 %43, -1
  br i1 %cmp45, label %if.then47, label %if.end50

if.then47:
  %44 = load ptr, ptr %net.addr, align 8
  %45 = load i32, ptr %sizes, align 4
  %call48 = call ptr @tensor_data(ptr %44, i32 %45)
  %46 = load ptr, ptr %tensor.addr, align 8
  %sizes49 = getelementptr inbounds %struct.vdla_tensor, ptr %46, i32 0, i32 6
  store ptr %call48, ptr %sizes49, align 8
  br label %if.end50

if.end50:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %47 = load i32, ptr %retval, align 4
  ret i32 %47
}

define internal ptr @tensor_data(ptr %net, i32 %tensor) nounwind {
entry:
  %retval = alloca ptr, align 8
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %offset = alloca i64, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call i64 @tensor_offset(ptr %0, i32 %1)
  store i64 %call, ptr %offset, align 8
  %2 = load ptr, ptr %net.addr, align 8
  %constants = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 10
  %3 = load ptr, ptr %constants, align 8
  %tobool = icmp ne ptr %3, null
  br i1 %tobool, label %land.lhs.true, label %if.end

land.lhs.true:
  %4 = load i64, ptr %offset, align 8
  %5 = load ptr, ptr %net.addr, align 8
  %6 = load i32, ptr %tensor.addr, align 4
  %call1 = call i64 @tensor_bytes(ptr %5, i32 %6)
  %add = add i64 %4, %call1
  %7 = load ptr, ptr %net.addr, align 8
  %constant_bytes = getelementptr inbounds %struct.vdla, ptr %7, i32 0, i32 5
  %8 = load i64, ptr %constant_bytes, align 8
  %cmp = icmp ule i64 %add, %8
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %9 = load ptr, ptr %net.addr, align 8
  %constants2 = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 10
  %10 = load ptr, ptr %constants2, align 8
  %11 = ptrtoint ptr %10 to i64
  %12 = inttoptr i64 %11 to ptr
  %13 = load i64, ptr %offset, align 8
  %add.ptr = getelementptr inbounds i8, ptr %12, i64 %13
  store ptr %add.ptr, ptr %retval, align 8
  br label %return

if.end:
  %14 = load ptr, ptr %net.addr, align 8
  %image = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 11
  %15 = load ptr, ptr %image, align 8
  %16 = load i64, ptr %offset, align 8
  %17 = load ptr, ptr %net.addr, align 8
  %first = getelementptr inbounds %struct.vdla, ptr %17, i32 0, i32 12
  %18 = load i64, ptr %first, align 8
  %sub = sub i64 %16, %18
  %add.ptr3 = getelementptr inbounds i8, ptr %15, i64 %sub
  store ptr %add.ptr3, ptr %retval, align 8
  br label %return

return:
  %19 = load ptr, ptr %retval, align 8
  ret ptr %19
}

define internal i64 @count_of(ptr %net, i32 %tensor, i64 %most) nounwind {
entry:
  %retval = alloca i64, align 8
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %most.addr = alloca i64, align 8
  %at = alloca ptr, align 8
  %count = alloca i64, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  store i64 %most, ptr %most.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call ptr @tensor_data(ptr %0, i32 %1)
  store ptr %call, ptr %at, align 8
  %2 = load ptr, ptr %at, align 8
  %call1 = call i64 @size_at(ptr %2)
  store i64 %call1, ptr %count, align 8
  %3 = load ptr, ptr %at, align 8
  %arrayidx = getelementptr inbounds i8, ptr %3, i64 7
  %4 = load i8, ptr %arrayidx, align 1
  %conv = zext i8 %4 to i32
  %and = and i32 %conv, 128
  %tobool = icmp ne i32 %and, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  store i64 0, ptr %retval, align 8
  br label %return

if.end:
  %5 = load i64, ptr %count, align 8
  %6 = load i64, ptr %most.addr, align 8
  %cmp = icmp ult i64 %5, %6
  br i1 %cmp, label %cond.true, label %cond.false

cond.true:
  %7 = load i64, ptr %count, align 8
  br label %cond.end

cond.false:
  %8 = load i64, ptr %most.addr, align 8
  br label %cond.end

cond.end:
  %cond = phi i64 [ %7, %cond.true ], [ %8, %cond.false ]
  store i64 %cond, ptr %retval, align 8
  br label %return

return:
  %9 = load i64, ptr %retval, align 8
  ret i64 %9
}

define i32 @vdla_state(ptr %net, ptr %data, ptr %bytes) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %data.addr = alloca ptr, align 8
  %bytes.addr = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  store ptr %data, ptr %data.addr, align 8
  store ptr %bytes, ptr %bytes.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %image = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 11
  %1 = load ptr, ptr %image, align 8
  %2 = load ptr, ptr %data.addr, align 8
  store ptr %1, ptr %2, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %dram_bytes = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 4
  %4 = load i64, ptr %dram_bytes, align 8
  %5 = load ptr, ptr %net.addr, align 8
  %first = getelementptr inbounds %struct.vdla, ptr %5, i32 0, i32 12
  %6 = load i64, ptr %first, align 8
  %sub = sub i64 %4, %6
  %7 = load ptr, ptr %bytes.addr, align 8
  store i64 %sub, ptr %7, align 8
  ret i32 0
}

define i32 @open_board(ptr %net) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %board = alloca ptr, align 8
  %status = alloca i32, align 4
  %bytes = alloca i64, align 8
  %memory = alloca ptr, align 8
  %step = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %board1 = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 9
  %1 = load ptr, ptr %board1, align 8
  store ptr %1, ptr %board, align 8
  %2 = load ptr, ptr %net.addr, align 8
  %call = call i32 @identify(ptr %2)
  store i32 %call, ptr %status, align 4
  %3 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %3, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %4 = load i32, ptr %status, align 4
  store i32 %4, ptr %retval, align 4
  br label %return

if.end:
  %5 = load ptr, ptr %net.addr, align 8
  %call2 = call i64 @whole_pages(ptr %5)
  store i64 %call2, ptr %bytes, align 8
  store ptr null, ptr %memory, align 8
  %6 = load ptr, ptr %board, align 8
  %map = getelementptr inbounds %struct.vdla_board, ptr %6, i32 0, i32 3
  %7 = load ptr, ptr %map, align 8
  %8 = load ptr, ptr %board, align 8
  %context = getelementptr inbounds %struct.vdla_board, ptr %8, i32 0, i32 0
  %9 = load ptr, ptr %context, align 8
  %10 = load i64, ptr %bytes, align 8
  %11 = load ptr, ptr %net.addr, align 8
  %address = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 21
  %call3 = call i32 %7(ptr %9, i64 %10, ptr %memory, ptr %address)
  %tobool4 = icmp ne i32 %call3, 0
  br i1 %tobool4, label %if.then5, label %lor.lhs.false

lor.lhs.false:
  %12 = load ptr, ptr %memory, align 8
  %cmp = icmp eq ptr %12, null
  br i1 %cmp, label %if.then5, label %if.end7

if.then5:
  %13 = load ptr, ptr %net.addr, align 8
  %call6 = call i32 @fail_with(ptr %13, i32 8, ptr @.str.23, ptr @.str.24, ptr @.str.25)
  store i32 %call6, ptr %retval, align 4
  br label %return

if.end7:
  %14 = load ptr, ptr %memory, align 8
  %15 = load ptr, ptr %net.addr, align 8
  %image = getelementptr inbounds %struct.vdla, ptr %15, i32 0, i32 11
  store ptr %14, ptr %image, align 8
  %16 = load ptr, ptr %net.addr, align 8
  %image8 = getelementptr inbounds %struct.vdla, ptr %16, i32 0, i32 11
  %17 = load ptr, ptr %image8, align 8
  %18 = load i64, ptr %bytes, align 8
  call void @llvm.memset.p0.i64(ptr align 1 %17, i8 0, i64 %18, i1 false)
  %19 = load ptr, ptr %net.addr, align 8
  %image9 = getelementptr inbounds %struct.vdla, ptr %19, i32 0, i32 11
  %20 = load ptr, ptr %image9, align 8
  %21 = load ptr, ptr %net.addr, align 8
  %sections = getelementptr inbounds %struct.vdla, ptr %21, i32 0, i32 3
  %22 = load ptr, ptr %sections, align 8
  %23 = load ptr, ptr %net.addr, align 8
  %constant_bytes = getelementptr inbounds %struct.vdla, ptr %23, i32 0, i32 5
  %24 = load i64, ptr %constant_bytes, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %20, ptr align 1 %22, i64 %24, i1 false)
  %25 = load ptr, ptr %net.addr, align 8
  %26 = load ptr, ptr %net.addr, align 8
  %constant_bytes10 = getelementptr inbounds %struct.vdla, ptr %26, i32 0, i32 5
  %27 = load i64, ptr %constant_bytes10, align 8
  %call11 = call i32 @flush(ptr %25, i64 0, i64 %27, i32 0)
  store i32 %call11, ptr %status, align 4
  %28 = load i32, ptr %status, align 4
  %tobool12 = icmp ne i32 %28, 0
  br i1 %tobool12, label %if.then13, label %if.end14

if.then13:
  %29 = load i32, ptr %status, align 4
  store i32 %29, ptr %retval, align 4
  br label %return

if.end14:
  store i32 0, ptr %step, align 4
  br label %for.cond

for.cond:
  %30 = load i32, ptr %step, align 4
  %31 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %31, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 4
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %32 = load i32, ptr %count, align 8
  %cmp15 = icmp ult i32 %30, %32
  br i1 %cmp15, label %for.body, label %for.end

for.body:
  %33 = load ptr, ptr %net.addr, align 8
  %34 = load i32, ptr %step, align 4
  %call16 = call i32 @step_word(ptr %33, i32 %34, i32 0)
  %cmp17 = icmp eq i32 %call16, 1
  br i1 %cmp17, label %if.then18, label %if.end20

if.then18:
  %35 = load ptr, ptr %net.addr, align 8
  %36 = load i32, ptr %step, align 4
  %call19 = call i32 @place_program(ptr %35, i32 %36)
  store i32 %call19, ptr %status, align 4
  br label %if.end20

if.end20:
  %37 = load i32, ptr %status, align 4
  %tobool21 = icmp ne i32 %37, 0
  br i1 %tobool21, label %if.then22, label %if.end23

if.then22:
  %38 = load i32, ptr %status, align 4
  store i32 %38, ptr %retval, align 4
  br label %return

if.end23:
  br label %for.inc

for.inc:
  %39 = load i32, ptr %step, align 4
  %inc = add i32 %39, 1
  store i32 %inc, ptr %step, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %40 = load i32, ptr %retval, align 4
  ret i32 %40
}

define internal i32 @identify(ptr %net) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %own = alloca [4 x i32], align 16
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %board = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 9
  %1 = load ptr, ptr %board, align 8
  %read = getelementptr inbounds %struct.vdla_board, ptr %1, i32 0, i32 1
  %2 = load ptr, ptr %read, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %board1 = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 9
  %4 = load ptr, ptr %board1, align 8
  %context = getelementptr inbounds %struct.vdla_board, ptr %4, i32 0, i32 0
  %5 = load ptr, ptr %context, align 8
  %arraydecay = getelementptr inbounds [4 x i32], ptr %own, i64 0, i64 0
  %call = call i32 %2(ptr %5, i32 0, ptr %arraydecay, i32 4)
  %tobool = icmp ne i32 %call, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %net.addr, align 8
  %call2 = call i32 @silent(ptr %6)
  store i32 %call2, ptr %retval, align 4
  br label %return

if.end:
  %arrayidx = getelementptr inbounds [4 x i32], ptr %own, i64 0, i64 0
  %7 = load i32, ptr %arrayidx, align 16
  %cmp = icmp ne i32 %7, 1447316545
  br i1 %cmp, label %if.then3, label %if.end6

if.then3:
  %8 = load ptr, ptr %net.addr, align 8
  %arrayidx4 = getelementptr inbounds [4 x i32], ptr %own, i64 0, i64 0
  %9 = load i32, ptr %arrayidx4, align 16
  %call5 = call i32 @other(ptr %8, i32 8, ptr @.str.92, i32 1447316545, i32 %9)
  store i32 %call5, ptr %retval, align 4
  br label %return

if.end6:
  %arrayidx7 = getelementptr inbounds [4 x i32], ptr %own, i64 0, i64 1
  %10 = load i32, ptr %arrayidx7, align 4
  %shr = lshr i32 %10, 16
  %cmp8 = icmp ne i32 %shr, 2
  br i1 %cmp8, label %if.then9, label %if.end13

if.then9:
  %11 = load ptr, ptr %net.addr, align 8
  %arrayidx10 = getelementptr inbounds [4 x i32], ptr %own, i64 0, i64 1
  %12 = load i32, ptr %arrayidx10, align 4
  %shr11 = lshr i32 %12, 16
  %call12 = call i32 @other(ptr %11, i32 8, ptr @.str.93, i32 2, i32 %shr11)
  store i32 %call12, ptr %retval, align 4
  br label %return

if.end13:
  %arrayidx14 = getelementptr inbounds [4 x i32], ptr %own, i64 0, i64 2
  %13 = load i32, ptr %arrayidx14, align 8
  %14 = load ptr, ptr %net.addr, align 8
  %isa = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 6
  %15 = load i32, ptr %isa, align 8
  %cmp15 = icmp ne i32 %13, %15
  br i1 %cmp15, label %if.then16, label %if.end20

if.then16:
  %16 = load ptr, ptr %net.addr, align 8
  %17 = load ptr, ptr %net.addr, align 8
  %isa17 = getelementptr inbounds %struct.vdla, ptr %17, i32 0, i32 6
  %18 = load i32, ptr %isa17, align 8
  %arrayidx18 = getelementptr inbounds [4 x i32], ptr %own, i64 0, i64 2
  %19 = load i32, ptr %arrayidx18, align 8
  %call19 = call i32 @other(ptr %16, i32 3, ptr @.str.94, i32 %18, i32 %19)
  store i32 %call19, ptr %retval, align 4
  br label %return

if.end20:
  %arrayidx21 = getelementptr inbounds [4 x i32], ptr %own, i64 0, i64 3
  %20 = load i32, ptr %arrayidx21, align 4
  %21 = load ptr, ptr %net.addr, align 8
  %config = getelementptr inbounds %struct.vdla, ptr %21, i32 0, i32 7
  %22 = load i32, ptr %config, align 4
  %cmp22 = icmp ne i32 %20, %22
  br i1 %cmp22, label %if.then23, label %if.end27

if.then23:
  %23 = load ptr, ptr %net.addr, align 8
  %24 = load ptr, ptr %net.addr, align 8
  %config24 = getelementptr inbounds %struct.vdla, ptr %24, i32 0, i32 7
  %25 = load i32, ptr %config24, align 4
  %arrayidx25 = getelementptr inbounds [4 x i32], ptr %own, i64 0, i64 3
  %26 = load i32, ptr %arrayidx25, align 4
  %call26 = call i32 @other(ptr %23, i32 3, ptr @.str.95, i32 %25, i32 %26)
  store i32 %call26, ptr %retval, align 4
  br label %return

if.end27:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %27 = load i32, ptr %retval, align 4
  ret i32 %27
}

define internal i64 @whole_pages(ptr %net) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %dram_bytes = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 4
  %1 = load i64, ptr %dram_bytes, align 8
  %add = add i64 %1, 4096
  %sub = sub i64 %add, 1
  %div = udiv i64 %sub, 4096
  %mul = mul i64 %div, 4096
  ret i64 %mul
}

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)

define internal i32 @flush(ptr %net, i64 %from, i64 %to, i32 %direction) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %from.addr = alloca i64, align 8
  %to.addr = alloca i64, align 8
  %direction.addr = alloca i32, align 4
  %board = alloca ptr, align 8
  %silence = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i64 %from, ptr %from.addr, align 8
  store i64 %to, ptr %to.addr, align 8
  store i32 %direction, ptr %direction.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %board1 = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 9
  %1 = load ptr, ptr %board1, align 8
  store ptr %1, ptr %board, align 8
  %2 = load i64, ptr %from.addr, align 8
  %3 = load i64, ptr %to.addr, align 8
  %cmp = icmp uge i64 %2, %3
  br i1 %cmp, label %if.then, label %if.end

if.then:
  store i32 0, ptr %retval, align 4
  br label %return

if.end:
  %4 = load ptr, ptr %board, align 8
  %flush = getelementptr inbounds %struct.vdla_board, ptr %4, i32 0, i32 4
  %5 = load ptr, ptr %flush, align 8
  %6 = load ptr, ptr %board, align 8
  %context = getelementptr inbounds %struct.vdla_board, ptr %6, i32 0, i32 0
  %7 = load ptr, ptr %context, align 8
  %8 = load ptr, ptr %net.addr, align 8
  %image = getelementptr inbounds %struct.vdla, ptr %8, i32 0, i32 11
  %9 = load ptr, ptr %image, align 8
  %10 = load i64, ptr %from.addr, align 8
  %add.ptr = getelementptr inbounds i8, ptr %9, i64 %10
  %11 = load i64, ptr %to.addr, align 8
  %12 = load i64, ptr %from.addr, align 8
  %sub = sub i64 %11, %12
  %13 = load i32, ptr %direction.addr, align 4
  %call = call i32 %5(ptr %7, ptr %add.ptr, i64 %sub, i32 %13)
  store i32 %call, ptr %silence, align 4
  %14 = load i32, ptr %silence, align 4
  %tobool = icmp ne i32 %14, 0
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %15 = load ptr, ptr %net.addr, align 8
  %call2 = call i32 @silent(ptr %15)
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi i32 [ %call2, %cond.true ], [ 0, %cond.false ]
  store i32 %cond, ptr %retval, align 4
  br label %return

return:
  %16 = load i32, ptr %retval, align 4
  ret i32 %16
}

define internal i32 @place_program(ptr %net, i32 %step) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %bytes = alloca i64, align 8
  %program = alloca ptr, align 8
  %base = alloca i64, align 8
  %size = alloca i64, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %net.addr, align 8
  %2 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_x(ptr %1, i32 %2, i32 0)
  %call1 = call ptr @section_data(ptr %0, i32 %call, ptr %bytes)
  store ptr %call1, ptr %program, align 8
  %3 = load ptr, ptr %program, align 8
  %call2 = call i32 @program_base(ptr %3)
  %conv = zext i32 %call2 to i64
  store i64 %conv, ptr %base, align 8
  %4 = load ptr, ptr %program, align 8
  %call3 = call i32 @instruction_bytes(ptr %4)
  %conv4 = zext i32 %call3 to i64
  %5 = load ptr, ptr %program, align 8
  %call5 = call i32 @program_length(ptr %5)
  %conv6 = zext i32 %call5 to i64
  %mul = mul i64 %conv4, %conv6
  store i64 %mul, ptr %size, align 8
  %6 = load ptr, ptr %net.addr, align 8
  %image = getelementptr inbounds %struct.vdla, ptr %6, i32 0, i32 11
  %7 = load ptr, ptr %image, align 8
  %8 = load i64, ptr %base, align 8
  %add.ptr = getelementptr inbounds i8, ptr %7, i64 %8
  %9 = load ptr, ptr %program, align 8
  %add.ptr7 = getelementptr inbounds i8, ptr %9, i64 32
  %10 = load i64, ptr %size, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %add.ptr, ptr align 1 %add.ptr7, i64 %10, i1 false)
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load i64, ptr %base, align 8
  %13 = load i64, ptr %base, align 8
  %14 = load i64, ptr %size, align 8
  %add = add i64 %13, %14
  %call8 = call i32 @flush(ptr %11, i64 %12, i64 %add, i32 0)
  ret i32 %call8
}

define i32 @run_program(ptr %net, i32 %step) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %first = alloca i32, align 4
  %given = alloca i32, align 4
  %wanted = alloca i32, align 4
  %bytes = alloca i64, align 8
  %program = alloca ptr, align 8
  %rests = alloca i32, align 4
  %status = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_x(ptr %0, i32 %1, i32 1)
  store i32 %call, ptr %first, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %step.addr, align 4
  %call1 = call i32 @step_x(ptr %2, i32 %3, i32 2)
  store i32 %call1, ptr %given, align 4
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %step.addr, align 4
  %call2 = call i32 @step_x(ptr %4, i32 %5, i32 3)
  store i32 %call2, ptr %wanted, align 4
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load ptr, ptr %net.addr, align 8
  %8 = load i32, ptr %step.addr, align 4
  %call3 = call i32 @step_x(ptr %7, i32 %8, i32 0)
  %call4 = call ptr @section_data(ptr %6, i32 %call3, ptr %bytes)
  store ptr %call4, ptr %program, align 8
  store i32 0, ptr %rests, align 4
  %9 = load ptr, ptr %net.addr, align 8
  %10 = load i32, ptr %first, align 4
  %11 = load i32, ptr %given, align 4
  %call5 = call i32 @flush_ranges(ptr %9, i32 %10, i32 %11, i32 0)
  store i32 %call5, ptr %status, align 4
  %12 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %12, 0
  br i1 %tobool, label %if.end, label %if.then

if.then:
  %13 = load ptr, ptr %net.addr, align 8
  %call6 = call i32 @flush_for_board(ptr %13)
  store i32 %call6, ptr %status, align 4
  br label %if.end

if.end:
  %14 = load i32, ptr %status, align 4
  %tobool7 = icmp ne i32 %14, 0
  br i1 %tobool7, label %if.end10, label %if.then8

if.then8:
  %15 = load ptr, ptr %net.addr, align 8
  %call9 = call i32 @stop(ptr %15)
  store i32 %call9, ptr %status, align 4
  br label %if.end10

if.end10:
  %16 = load i32, ptr %status, align 4
  %tobool11 = icmp ne i32 %16, 0
  br i1 %tobool11, label %if.end14, label %if.then12

if.then12:
  %17 = load ptr, ptr %net.addr, align 8
  %18 = load ptr, ptr %program, align 8
  %call13 = call i32 @start(ptr %17, ptr %18)
  store i32 %call13, ptr %status, align 4
  br label %if.end14

if.end14:
  %19 = load i32, ptr %status, align 4
  %tobool15 = icmp ne i32 %19, 0
  br i1 %tobool15, label %if.end18, label %if.then16

if.then16:
  %20 = load ptr, ptr %net.addr, align 8
  %call17 = call i32 @await(ptr %20, i32 0, ptr %rests)
  store i32 %call17, ptr %status, align 4
  br label %if.end18

if.end18:
  %21 = load i32, ptr %status, align 4
  %tobool19 = icmp ne i32 %21, 0
  br i1 %tobool19, label %if.end27, label %land.lhs.true

land.lhs.true:
  %22 = load i32, ptr %rests, align 4
  %tobool20 = icmp ne i32 %22, 0
  br i1 %tobool20, label %if.end27, label %if.then21

if.then21:
  %23 = load ptr, ptr %net.addr, align 8
  %call22 = call i32 @stop(ptr %23)
  store i32 %call22, ptr %status, align 4
  %24 = load i32, ptr %status, align 4
  %tobool23 = icmp ne i32 %24, 0
  br i1 %tobool23, label %if.then24, label %if.end25

if.then24:
  %25 = load i32, ptr %status, align 4
  store i32 %25, ptr %retval, align 4
  br label %return

if.end25:
  %26 = load ptr, ptr %net.addr, align 8
  %27 = load i32, ptr %step.addr, align 4
  %call26 = call i32 @fail_at_step(ptr %26, i32 9, i32 %27, ptr @.str.26, ptr @.str.27)
  store i32 %call26, ptr %retval, align 4
  br label %return

if.end27:
  %28 = load i32, ptr %status, align 4
  %tobool28 = icmp ne i32 %28, 0
  br i1 %tobool28, label %if.end31, label %if.then29

if.then29:
  %29 = load ptr, ptr %net.addr, align 8
  %30 = load i32, ptr %step.addr, align 4
  %call30 = call i32 @check_end(ptr %29, i32 %30)
  store i32 %call30, ptr %status, align 4
  br label %if.end31

if.end31:
  %31 = load i32, ptr %status, align 4
  %tobool32 = icmp ne i32 %31, 0
  br i1 %tobool32, label %if.end35, label %if.then33

if.then33:
  %32 = load ptr, ptr %net.addr, align 8
  %call34 = call i32 @add_cycles(ptr %32)
  store i32 %call34, ptr %status, align 4
  br label %if.end35

if.end35:
  %33 = load i32, ptr %status, align 4
  %tobool36 = icmp ne i32 %33, 0
  br i1 %tobool36, label %if.end39, label %if.then37

if.then37:
  %34 = load ptr, ptr %net.addr, align 8
  %35 = load i32, ptr %first, align 4
  %36 = load i32, ptr %given, align 4
  %add = add i32 %35, %36
  %37 = load i32, ptr %wanted, align 4
  %call38 = call i32 @flush_ranges(ptr %34, i32 %add, i32 %37, i32 1)
  store i32 %call38, ptr %status, align 4
  br label %if.end39

if.end39:
  %38 = load i32, ptr %status, align 4
  store i32 %38, ptr %retval, align 4
  br label %return

return:
  %39 = load i32, ptr %retval, align 4
  ret i32 %39
}

define internal i32 @step_x(ptr %net, i32 %step, i32 %which) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %which.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  store i32 %which, ptr %which.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %2 = load i32, ptr %which.addr, align 4
  %add = add nsw i32 4, %2
  %call = call i32 @step_word(ptr %0, i32 %1, i32 %add)
  ret i32 %call
}

define internal i32 @flush_ranges(ptr %net, i32 %first, i32 %count, i32 %direction) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %first.addr = alloca i32, align 4
  %count.addr = alloca i32, align 4
  %direction.addr = alloca i32, align 4
  %n = alloca i32, align 4
  %range = alloca ptr, align 8
  %from = alloca i64, align 8
  %to = alloca i64, align 8
  %status = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %first, ptr %first.addr, align 4
  store i32 %count, ptr %count.addr, align 4
  store i32 %direction, ptr %direction.addr, align 4
  %0 = load i32, ptr %first.addr, align 4
  store i32 %0, ptr %n, align 4
  br label %for.cond

for.cond:
  %1 = load i32, ptr %n, align 4
  %2 = load i32, ptr %first.addr, align 4
  %3 = load i32, ptr %count.addr, align 4
  %add = add i32 %2, %3
  %cmp = icmp ult i32 %1, %add
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %n, align 4
  %call = call ptr @entry(ptr %4, i32 7, i32 %5, i32 4)
  store ptr %call, ptr %range, align 8
  %6 = load ptr, ptr %range, align 8
  %add.ptr = getelementptr inbounds i8, ptr %6, i64 0
  %call1 = call i64 @size_at(ptr %add.ptr)
  store i64 %call1, ptr %from, align 8
  %7 = load ptr, ptr %range, align 8
  %add.ptr2 = getelementptr inbounds i8, ptr %7, i64 8
  %call3 = call i64 @size_at(ptr %add.ptr2)
  store i64 %call3, ptr %to, align 8
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i64, ptr %from, align 8
  %10 = load i64, ptr %to, align 8
  %11 = load i32, ptr %direction.addr, align 4
  %call4 = call i32 @flush(ptr %8, i64 %9, i64 %10, i32 %11)
  store i32 %call4, ptr %status, align 4
  %12 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %12, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %13 = load i32, ptr %status, align 4
  store i32 %13, ptr %retval, align 4
  br label %return

if.end:
  br label %for.inc

for.inc:
  %14 = load i32, ptr %n, align 4
  %inc = add i32 %14, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %15 = load i32, ptr %retval, align 4
  ret i32 %15
}

define internal i32 @flush_for_board(ptr %net) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %net.addr, align 8
  %constant_bytes = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 5
  %2 = load i64, ptr %constant_bytes, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %dram_bytes = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 4
  %4 = load i64, ptr %dram_bytes, align 8
  %call = call i32 @flush(ptr %0, i64 %2, i64 %4, i32 2)
  ret i32 %call
}

define internal i32 @stop(ptr %net) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %busy = alloca i32, align 4
  %rests = alloca i32, align 4
  %status = alloca i32, align 4
  %words = alloca %struct.words, align 8
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %board = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 9
  %1 = load ptr, ptr %board, align 8
  %read = getelementptr inbounds %struct.vdla_board, ptr %1, i32 0, i32 1
  %2 = load ptr, ptr %read, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %board1 = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 9
  %4 = load ptr, ptr %board1, align 8
  %context = getelementptr inbounds %struct.vdla_board, ptr %4, i32 0, i32 0
  %5 = load ptr, ptr %context, align 8
  %call = call i32 %2(ptr %5, i32 20, ptr %busy, i32 1)
  %tobool = icmp ne i32 %call, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %net.addr, align 8
  %call2 = call i32 @silent(ptr %6)
  store i32 %call2, ptr %retval, align 4
  br label %return

if.end:
  %7 = load i32, ptr %busy, align 4
  %cmp = icmp eq i32 %7, 0
  br i1 %cmp, label %if.then3, label %if.end4

if.then3:
  store i32 0, ptr %retval, align 4
  br label %return

if.end4:
  store i32 0, ptr %rests, align 4
  %8 = load ptr, ptr %net.addr, align 8
  %call5 = call i32 @write_register(ptr %8, i32 16, i32 2)
  store i32 %call5, ptr %status, align 4
  %9 = load i32, ptr %status, align 4
  %tobool6 = icmp ne i32 %9, 0
  br i1 %tobool6, label %if.end9, label %if.then7

if.then7:
  %10 = load ptr, ptr %net.addr, align 8
  %call8 = call i32 @await(ptr %10, i32 1, ptr %rests)
  store i32 %call8, ptr %status, align 4
  br label %if.end9

if.end9:
  %11 = load i32, ptr %status, align 4
  %tobool10 = icmp ne i32 %11, 0
  br i1 %tobool10, label %if.then12, label %lor.lhs.false

lor.lhs.false:
  %12 = load i32, ptr %rests, align 4
  %tobool11 = icmp ne i32 %12, 0
  br i1 %tobool11, label %if.then12, label %if.end13

if.then12:
  %13 = load i32, ptr %status, align 4
  store i32 %13, ptr %retval, align 4
  br label %return

if.end13:
  %14 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %14, ptr %words)
  call void @put(ptr %words, ptr @.str.98)
  store i32 8, ptr %retval, align 4
  br label %return

return:
  %15 = load i32, ptr %retval, align 4
  ret i32 %15
}

define internal i32 @start(ptr %net, ptr %program) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %program.addr = alloca ptr, align 8
  %values = alloca [8 x [2 x i32]], align 16
  %n = alloca i64, align 8
  %status = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store ptr %program, ptr %program.addr, align 8
  store i32 32, ptr %values, align 4
  %arrayinit.element = getelementptr inbounds i32, ptr %values, i64 1
  %0 = load ptr, ptr %net.addr, align 8
  %isa = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 6
  %1 = load i32, ptr %isa, align 8
  store i32 %1, ptr %arrayinit.element, align 4
  %arrayinit.element1 = getelementptr inbounds [2 x i32], ptr %values, i64 1
  store i32 36, ptr %arrayinit.element1, align 4
  %arrayinit.element2 = getelementptr inbounds i32, ptr %arrayinit.element1, i64 1
  %2 = load ptr, ptr %net.addr, align 8
  %config = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 7
  %3 = load i32, ptr %config, align 4
  store i32 %3, ptr %arrayinit.element2, align 4
  %arrayinit.element3 = getelementptr inbounds [2 x i32], ptr %values, i64 2
  store i32 40, ptr %arrayinit.element3, align 4
  %arrayinit.element4 = getelementptr inbounds i32, ptr %arrayinit.element3, i64 1
  %4 = load ptr, ptr %program.addr, align 8
  %call = call i32 @program_base(ptr %4)
  store i32 %call, ptr %arrayinit.element4, align 4
  %arrayinit.element5 = getelementptr inbounds [2 x i32], ptr %values, i64 3
  store i32 44, ptr %arrayinit.element5, align 4
  %arrayinit.element6 = getelementptr inbounds i32, ptr %arrayinit.element5, i64 1
  %5 = load ptr, ptr %program.addr, align 8
  %call7 = call i32 @program_length(ptr %5)
  store i32 %call7, ptr %arrayinit.element6, align 4
  %arrayinit.element8 = getelementptr inbounds [2 x i32], ptr %values, i64 4
  store i32 48, ptr %arrayinit.element8, align 4
  %arrayinit.element9 = getelementptr inbounds i32, ptr %arrayinit.element8, i64 1
  %6 = load ptr, ptr %net.addr, align 8
  %address = getelementptr inbounds %struct.vdla, ptr %6, i32 0, i32 21
  %7 = load i32, ptr %address, align 8
  store i32 %7, ptr %arrayinit.element9, align 4
  %arrayinit.element10 = getelementptr inbounds [2 x i32], ptr %values, i64 5
  store i32 52, ptr %arrayinit.element10, align 4
  %arrayinit.element11 = getelementptr inbounds i32, ptr %arrayinit.element10, i64 1
  %8 = load ptr, ptr %net.addr, align 8
  %call12 = call i64 @whole_pages(ptr %8)
  %conv = trunc i64 %call12 to i32
  store i32 %conv, ptr %arrayinit.element11, align 4
  %arrayinit.element13 = getelementptr inbounds [2 x i32], ptr %values, i64 6
  store i32 28, ptr %arrayinit.element13, align 4
  %arrayinit.element14 = getelementptr inbounds i32, ptr %arrayinit.element13, i64 1
  store i32 3, ptr %arrayinit.element14, align 4
  %arrayinit.element15 = getelementptr inbounds [2 x i32], ptr %values, i64 7
  store i32 16, ptr %arrayinit.element15, align 4
  %arrayinit.element16 = getelementptr inbounds i32, ptr %arrayinit.element15, i64 1
  store i32 1, ptr %arrayinit.element16, align 4
  store i64 0, ptr %n, align 8
  br label %for.cond

for.cond:
  %9 = load i64, ptr %n, align 8
  %cmp = icmp ult i64 %9, 8
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %10 = load ptr, ptr %net.addr, align 8
  %11 = load i64, ptr %n, align 8
  %arrayidx = getelementptr inbounds [8 x [2 x i32]], ptr %values, i64 0, i64 %11
  %arrayidx18 = getelementptr inbounds [2 x i32], ptr %arrayidx, i64 0, i64 0
  %12 = load i32, ptr %arrayidx18, align 8
  %13 = load i64, ptr %n, align 8
  %arrayidx19 = getelementptr inbounds [8 x [2 x i32]], ptr %values, i64 0, i64 %13
  %arrayidx20 = getelementptr inbounds [2 x i32], ptr %arrayidx19, i64 0, i64 1
  %14 = load i32, ptr %arrayidx20, align 4
  %call21 = call i32 @write_register(ptr %10, i32 %12, i32 %14)
  store i32 %call21, ptr %status, align 4
  %15 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %15, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %16 = load i32, ptr %status, align 4
  store i32 %16, ptr %retval, align 4
  br label %return

if.end:
  br label %for.inc

for.inc:
  %17 = load i64, ptr %n, align 8
  %inc = add i64 %17, 1
  store i64 %inc, ptr %n, align 8
  br label %for.cond

for.end:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %18 = load i32, ptr %retval, align 4
  ret i32 %18
}

define internal i32 @await(ptr %net, i32 %awaited, ptr %rests) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %awaited.addr = alloca i32, align 4
  %rests.addr = alloca ptr, align 8
  %board = alloca ptr, align 8
  %status = alloca i32, align 4
  %looks = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %awaited, ptr %awaited.addr, align 4
  store ptr %rests, ptr %rests.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %board1 = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 9
  %1 = load ptr, ptr %board1, align 8
  store ptr %1, ptr %board, align 8
  store i32 1, ptr %looks, align 4
  br label %for.cond

for.cond:
  %2 = load ptr, ptr %board, align 8
  %read = getelementptr inbounds %struct.vdla_board, ptr %2, i32 0, i32 1
  %3 = load ptr, ptr %read, align 8
  %4 = load ptr, ptr %board, align 8
  %context = getelementptr inbounds %struct.vdla_board, ptr %4, i32 0, i32 0
  %5 = load ptr, ptr %context, align 8
  %call = call i32 %3(ptr %5, i32 20, ptr %status, i32 1)
  %tobool = icmp ne i32 %call, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %net.addr, align 8
  %call2 = call i32 @silent(ptr %6)
  store i32 %call2, ptr %retval, align 4
  br label %return

if.end:
  %7 = load i32, ptr %status, align 4
  %and = and i32 %7, 9
  %cmp = icmp eq i32 %and, 0
  %conv = zext i1 %cmp to i32
  %8 = load ptr, ptr %rests.addr, align 8
  store i32 %conv, ptr %8, align 4
  %9 = load ptr, ptr %rests.addr, align 8
  %10 = load i32, ptr %9, align 4
  %tobool3 = icmp ne i32 %10, 0
  br i1 %tobool3, label %if.then7, label %lor.lhs.false

lor.lhs.false:
  %11 = load ptr, ptr %board, align 8
  %wait = getelementptr inbounds %struct.vdla_board, ptr %11, i32 0, i32 5
  %12 = load ptr, ptr %wait, align 8
  %13 = load ptr, ptr %board, align 8
  %context4 = getelementptr inbounds %struct.vdla_board, ptr %13, i32 0, i32 0
  %14 = load ptr, ptr %context4, align 8
  %15 = load i32, ptr %awaited.addr, align 4
  %16 = load i32, ptr %looks, align 4
  %call5 = call i32 %12(ptr %14, i32 %15, i32 %16)
  %tobool6 = icmp ne i32 %call5, 0
  br i1 %tobool6, label %if.then7, label %if.end8

if.then7:
  store i32 0, ptr %retval, align 4
  br label %return

if.end8:
  br label %for.inc

for.inc:
  %17 = load i32, ptr %looks, align 4
  %inc = add i32 %17, 1
  store i32 %inc, ptr %looks, align 4
  br label %for.cond

return:
  %18 = load i32, ptr %retval, align 4
  ret i32 %18
}

define internal i32 @check_end(ptr %net, i32 %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %board = alloca ptr, align 8
  %status = alloca i32, align 4
  %cause = alloca i32, align 4
  %at = alloca i32, align 4
  %words = alloca %struct.words, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %board1 = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 9
  %1 = load ptr, ptr %board1, align 8
  store ptr %1, ptr %board, align 8
  store i32 0, ptr %cause, align 4
  store i32 0, ptr %at, align 4
  %2 = load ptr, ptr %board, align 8
  %read = getelementptr inbounds %struct.vdla_board, ptr %2, i32 0, i32 1
  %3 = load ptr, ptr %read, align 8
  %4 = load ptr, ptr %board, align 8
  %context = getelementptr inbounds %struct.vdla_board, ptr %4, i32 0, i32 0
  %5 = load ptr, ptr %context, align 8
  %call = call i32 %3(ptr %5, i32 20, ptr %status, i32 1)
  %tobool = icmp ne i32 %call, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %net.addr, align 8
  %call2 = call i32 @silent(ptr %6)
  store i32 %call2, ptr %retval, align 4
  br label %return

if.end:
  %7 = load i32, ptr %status, align 4
  %and = and i32 %7, 4
  %tobool3 = icmp ne i32 %and, 0
  br i1 %tobool3, label %if.then4, label %if.end25

if.then4:
  %8 = load ptr, ptr %board, align 8
  %read5 = getelementptr inbounds %struct.vdla_board, ptr %8, i32 0, i32 1
  %9 = load ptr, ptr %read5, align 8
  %10 = load ptr, ptr %board, align 8
  %context6 = getelementptr inbounds %struct.vdla_board, ptr %10, i32 0, i32 0
  %11 = load ptr, ptr %context6, align 8
  %call7 = call i32 %9(ptr %11, i32 64, ptr %cause, i32 1)
  %tobool8 = icmp ne i32 %call7, 0
  br i1 %tobool8, label %if.then13, label %lor.lhs.false

lor.lhs.false:
  %12 = load ptr, ptr %board, align 8
  %read9 = getelementptr inbounds %struct.vdla_board, ptr %12, i32 0, i32 1
  %13 = load ptr, ptr %read9, align 8
  %14 = load ptr, ptr %board, align 8
  %context10 = getelementptr inbounds %struct.vdla_board, ptr %14, i32 0, i32 0
  %15 = load ptr, ptr %context10, align 8
  %call11 = call i32 %13(ptr %15, i32 68, ptr %at, i32 1)
  %tobool12 = icmp ne i32 %call11, 0
  br i1 %tobool12, label %if.then13, label %if.end15

if.then13:
  %16 = load ptr, ptr %net.addr, align 8
  %call14 = call i32 @silent(ptr %16)
  store i32 %call14, ptr %retval, align 4
  br label %return

if.end15:
  %17 = load i32, ptr %cause, align 4
  %conv = zext i32 %17 to i64
  %cmp = icmp ult i64 %conv, 6
  br i1 %cmp, label %cond.true, label %cond.false

cond.true:
  %18 = load i32, ptr %cause, align 4
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi i32 [ %18, %cond.true ], [ 0, %cond.false ]
  store i32 %cond, ptr %cause, align 4
  %19 = load ptr, ptr %net.addr, align 8
  %20 = load i32, ptr %step.addr, align 4
  %call17 = call i32 @fail_at_step(ptr %19, i32 9, i32 %20, ptr @.str.105, ptr @.str.106)
  %at18 = getelementptr inbounds %struct.words, ptr %words, i32 0, i32 0
  %21 = load ptr, ptr %net.addr, align 8
  %error = getelementptr inbounds %struct.vdla, ptr %21, i32 0, i32 0
  %arraydecay = getelementptr inbounds [224 x i8], ptr %error, i64 0, i64 0
  store ptr %arraydecay, ptr %at18, align 8
  %end = getelementptr inbounds %struct.words, ptr %words, i32 0, i32 1
  %22 = load ptr, ptr %net.addr, align 8
  %error19 = getelementptr inbounds %struct.vdla, ptr %22, i32 0, i32 0
  %arraydecay20 = getelementptr inbounds [224 x i8], ptr %error19, i64 0, i64 0
  %add.ptr = getelementptr inbounds i8, ptr %arraydecay20, i64 224
  %add.ptr21 = getelementptr inbounds i8, ptr %add.ptr, i64 -1
  store ptr %add.ptr21, ptr %end, align 8
  br label %while.cond

while.cond:
  %at22 = getelementptr inbounds %struct.words, ptr %words, i32 0, i32 0
  %23 = load ptr, ptr %at22, align 8
  %24 = load i8, ptr %23, align 1
  %tobool23 = icmp ne i8 %24, 0
  br i1 %tobool23, label %while.body, label %while.end

while.body:
  %at24 = getelementptr inbounds %struct.words, ptr %words, i32 0, i32 0
  %25 = load ptr, ptr %at24, align 8
  %incdec.ptr = getelementptr inbounds i8, ptr %25, i32 1
  store ptr %incdec.ptr, ptr %at24, align 8
  br label %while.cond

while.end:
  %26 = load i32, ptr %cause, align 4
  %idxprom = zext i32 %26 to i64
  %arrayidx = getelementptr inbounds [6 x ptr], ptr @check_end.FAULTS, i64 0, i64 %idxprom
  %27 = load ptr, ptr %arrayidx, align 8
  call void @put(ptr %words, ptr %27)
  call void @put(ptr %words, ptr @.str.107)
  %28 = load i32, ptr %at, align 4
  call void @put_hex(ptr %words, i32 %28)
  store i32 9, ptr %retval, align 4
  br label %return

if.end25:
  %29 = load i32, ptr %status, align 4
  %and26 = and i32 %29, 2
  %tobool27 = icmp ne i32 %and26, 0
  br i1 %tobool27, label %if.then28, label %if.end29

if.then28:
  store i32 0, ptr %retval, align 4
  br label %return

if.end29:
  %30 = load ptr, ptr %net.addr, align 8
  %31 = load i32, ptr %step.addr, align 4
  %call30 = call i32 @fail_at_step(ptr %30, i32 9, i32 %31, ptr @.str.108, ptr @.str.109)
  store i32 %call30, ptr %retval, align 4
  br label %return

return:
  %32 = load i32, ptr %retval, align 4
  ret i32 %32
}

define internal i32 @add_cycles(ptr %net) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %halves = alloca [2 x i32], align 4
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %board = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 9
  %1 = load ptr, ptr %board, align 8
  %read = getelementptr inbounds %struct.vdla_board, ptr %1, i32 0, i32 1
  %2 = load ptr, ptr %read, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %board1 = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 9
  %4 = load ptr, ptr %board1, align 8
  %context = getelementptr inbounds %struct.vdla_board, ptr %4, i32 0, i32 0
  %5 = load ptr, ptr %context, align 8
  %arraydecay = getelementptr inbounds [2 x i32], ptr %halves, i64 0, i64 0
  %call = call i32 %2(ptr %5, i32 80, ptr %arraydecay, i32 2)
  %tobool = icmp ne i32 %call, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %net.addr, align 8
  %call2 = call i32 @silent(ptr %6)
  store i32 %call2, ptr %retval, align 4
  br label %return

if.end:
  %arrayidx = getelementptr inbounds [2 x i32], ptr %halves, i64 0, i64 0
  %7 = load i32, ptr %arrayidx, align 4
  %8 = load ptr, ptr %net.addr, align 8
  %cycles_low = getelementptr inbounds %struct.vdla, ptr %8, i32 0, i32 22
  %9 = load i32, ptr %cycles_low, align 4
  %add = add i32 %9, %7
  store i32 %add, ptr %cycles_low, align 4
  %arrayidx3 = getelementptr inbounds [2 x i32], ptr %halves, i64 0, i64 1
  %10 = load i32, ptr %arrayidx3, align 4
  %11 = load ptr, ptr %net.addr, align 8
  %cycles_low4 = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 22
  %12 = load i32, ptr %cycles_low4, align 4
  %arrayidx5 = getelementptr inbounds [2 x i32], ptr %halves, i64 0, i64 0
  %13 = load i32, ptr %arrayidx5, align 4
  %cmp = icmp ult i32 %12, %13
  %conv = zext i1 %cmp to i32
  %add6 = add i32 %10, %conv
  %14 = load ptr, ptr %net.addr, align 8
  %cycles_high = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 23
  %15 = load i32, ptr %cycles_high, align 8
  %add7 = add i32 %15, %add6
  store i32 %add7, ptr %cycles_high, align 8
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %16 = load i32, ptr %retval, align 4
  ret i32 %16
}

define i32 @vdla_counters(ptr %net, ptr %cycles, ptr %counters, i32 %count) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %cycles.addr = alloca ptr, align 8
  %counters.addr = alloca ptr, align 8
  %count.addr = alloca i32, align 4
  %silence = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store ptr %cycles, ptr %cycles.addr, align 8
  store ptr %counters, ptr %counters.addr, align 8
  store i32 %count, ptr %count.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %cycles_high = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 23
  %1 = load i32, ptr %cycles_high, align 8
  %conv = zext i32 %1 to i64
  %shl = shl i64 %conv, 32
  %2 = load ptr, ptr %net.addr, align 8
  %cycles_low = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 22
  %3 = load i32, ptr %cycles_low, align 4
  %conv1 = zext i32 %3 to i64
  %or = or i64 %shl, %conv1
  %4 = load ptr, ptr %cycles.addr, align 8
  store i64 %or, ptr %4, align 8
  %5 = load i32, ptr %count.addr, align 4
  %cmp = icmp eq i32 %5, 0
  br i1 %cmp, label %if.then, label %if.end

if.then:
  store i32 0, ptr %retval, align 4
  br label %return

if.end:
  %6 = load ptr, ptr %net.addr, align 8
  %board = getelementptr inbounds %struct.vdla, ptr %6, i32 0, i32 9
  %7 = load ptr, ptr %board, align 8
  %cmp3 = icmp eq ptr %7, null
  br i1 %cmp3, label %if.then7, label %lor.lhs.false

lor.lhs.false:
  %8 = load i32, ptr %count.addr, align 4
  %cmp5 = icmp ugt i32 %8, 24
  br i1 %cmp5, label %if.then7, label %if.end9

if.then7:
  %9 = load ptr, ptr %net.addr, align 8
  %10 = load i32, ptr %count.addr, align 4
  %conv8 = zext i32 %10 to i64
  %call = call i32 @fail(ptr %9, i32 6, ptr @.str.28, ptr @.str.29, i64 %conv8)
  store i32 %call, ptr %retval, align 4
  br label %return

if.end9:
  %11 = load ptr, ptr %net.addr, align 8
  %board10 = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 9
  %12 = load ptr, ptr %board10, align 8
  %read = getelementptr inbounds %struct.vdla_board, ptr %12, i32 0, i32 1
  %13 = load ptr, ptr %read, align 8
  %14 = load ptr, ptr %net.addr, align 8
  %board11 = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 9
  %15 = load ptr, ptr %board11, align 8
  %context = getelementptr inbounds %struct.vdla_board, ptr %15, i32 0, i32 0
  %16 = load ptr, ptr %context, align 8
  %17 = load ptr, ptr %counters.addr, align 8
  %18 = load i32, ptr %count.addr, align 4
  %call12 = call i32 %13(ptr %16, i32 128, ptr %17, i32 %18)
  store i32 %call12, ptr %silence, align 4
  %19 = load i32, ptr %silence, align 4
  %tobool = icmp ne i32 %19, 0
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %20 = load ptr, ptr %net.addr, align 8
  %call13 = call i32 @silent(ptr %20)
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi i32 [ %call13, %cond.true ], [ 0, %cond.false ]
  store i32 %cond, ptr %retval, align 4
  br label %return

return:
  %21 = load i32, ptr %retval, align 4
  ret i32 %21
}

define internal i32 @silent(ptr %net) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %words = alloca %struct.words, align 8
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %0, ptr %words)
  call void @put(ptr %words, ptr @.str.110)
  ret i32 8
}

define i32 @vdla_run(ptr %net) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %n = alloca i32, align 4
  %status = alloca i32, align 4
  %status6 = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %0 = load i32, ptr %n, align 4
  %1 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 2
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %2 = load i32, ptr %count, align 8
  %cmp = icmp ult i32 %0, %2
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load i32, ptr %n, align 4
  %call = call i32 @check_indices(ptr %3, i32 %4)
  store i32 %call, ptr %status, align 4
  %5 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %5, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %6 = load i32, ptr %status, align 4
  store i32 %6, ptr %retval, align 4
  br label %return

if.end:
  br label %for.inc

for.inc:
  %7 = load i32, ptr %n, align 4
  %inc = add i32 %7, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  %8 = load ptr, ptr %net.addr, align 8
  %calls = getelementptr inbounds %struct.vdla, ptr %8, i32 0, i32 17
  store i32 0, ptr %calls, align 8
  %9 = load ptr, ptr %net.addr, align 8
  %frames_used = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 16
  store i64 0, ptr %frames_used, align 8
  %10 = load ptr, ptr %net.addr, align 8
  %cycles_high = getelementptr inbounds %struct.vdla, ptr %10, i32 0, i32 23
  store i32 0, ptr %cycles_high, align 8
  %11 = load ptr, ptr %net.addr, align 8
  %cycles_low = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 22
  store i32 0, ptr %cycles_low, align 4
  %12 = load ptr, ptr %net.addr, align 8
  %error = getelementptr inbounds %struct.vdla, ptr %12, i32 0, i32 0
  %arrayidx1 = getelementptr inbounds [224 x i8], ptr %error, i64 0, i64 0
  store i8 0, ptr %arrayidx1, align 8
  %13 = load ptr, ptr %net.addr, align 8
  %pool = getelementptr inbounds %struct.vdla, ptr %13, i32 0, i32 24
  %14 = load ptr, ptr %pool, align 8
  %tobool2 = icmp ne ptr %14, null
  br i1 %tobool2, label %if.then3, label %if.end5

if.then3:
  %15 = load ptr, ptr %net.addr, align 8
  %code = getelementptr inbounds %struct.vdla, ptr %15, i32 0, i32 8
  %16 = load ptr, ptr %code, align 8
  %set = getelementptr inbounds %struct.vdla_code, ptr %16, i32 0, i32 5
  %17 = load ptr, ptr %set, align 8
  %18 = load ptr, ptr %net.addr, align 8
  %pool4 = getelementptr inbounds %struct.vdla, ptr %18, i32 0, i32 24
  %19 = load ptr, ptr %pool4, align 8
  call void %17(ptr %19, i64 0)
  br label %if.end5

if.end5:
  %20 = load ptr, ptr %net.addr, align 8
  %call7 = call i32 @run_steps(ptr %20)
  store i32 %call7, ptr %status6, align 4
  %21 = load ptr, ptr %net.addr, align 8
  %pool8 = getelementptr inbounds %struct.vdla, ptr %21, i32 0, i32 24
  %22 = load ptr, ptr %pool8, align 8
  %tobool9 = icmp ne ptr %22, null
  br i1 %tobool9, label %if.then10, label %if.end14

if.then10:
  %23 = load ptr, ptr %net.addr, align 8
  %code11 = getelementptr inbounds %struct.vdla, ptr %23, i32 0, i32 8
  %24 = load ptr, ptr %code11, align 8
  %set12 = getelementptr inbounds %struct.vdla_code, ptr %24, i32 0, i32 5
  %25 = load ptr, ptr %set12, align 8
  %26 = load ptr, ptr %net.addr, align 8
  %pool13 = getelementptr inbounds %struct.vdla, ptr %26, i32 0, i32 24
  %27 = load ptr, ptr %pool13, align 8
  call void %25(ptr %27, i64 1)
  br label %if.end14

if.end14:
  %28 = load i32, ptr %status6, align 4
  store i32 %28, ptr %retval, align 4
  br label %return

return:
  %29 = load i32, ptr %retval, align 4
  ret i32 %29
}

define internal i32 @check_indices(ptr %net, i32 %number) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %number.addr = alloca i32, align 4
  %tensor = alloca i32, align 4
  %size = alloca i32, align 4
  %type = alloca i32, align 4
  %bytes = alloca i32, align 4
  %is_signed = alloca i32, align 4
  %at = alloca ptr, align 8
  %end = alloca ptr, align 8
  %words = alloca %struct.words, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %number, ptr %number.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %number.addr, align 4
  %mul = mul i32 2, %1
  %add = add i32 %mul, 0
  %call = call i32 @word(ptr %0, i32 2, i32 %add)
  store i32 %call, ptr %tensor, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %number.addr, align 4
  %mul1 = mul i32 2, %3
  %add2 = add i32 %mul1, 1
  %call3 = call i32 @word(ptr %2, i32 2, i32 %add2)
  store i32 %call3, ptr %size, align 4
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %tensor, align 4
  %call4 = call i32 @tensor_type(ptr %4, i32 %5)
  store i32 %call4, ptr %type, align 4
  %6 = load i32, ptr %type, align 4
  %call5 = call i32 @type_bytes(i32 %6)
  store i32 %call5, ptr %bytes, align 4
  %7 = load i32, ptr %type, align 4
  %sub = sub i32 %7, 1
  %rem = urem i32 %sub, 2
  %cmp = icmp eq i32 %rem, 0
  %conv = zext i1 %cmp to i32
  store i32 %conv, ptr %is_signed, align 4
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i32, ptr %tensor, align 4
  %call6 = call ptr @tensor_data(ptr %8, i32 %9)
  store ptr %call6, ptr %at, align 8
  %10 = load ptr, ptr %at, align 8
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load i32, ptr %tensor, align 4
  %call7 = call i64 @tensor_bytes(ptr %11, i32 %12)
  %add.ptr = getelementptr inbounds i8, ptr %10, i64 %call7
  store ptr %add.ptr, ptr %end, align 8
  br label %for.cond

for.cond:
  %13 = load i32, ptr %size, align 4
  %tobool = icmp ne i32 %13, 0
  br i1 %tobool, label %land.rhs, label %land.end

land.rhs:
  %14 = load ptr, ptr %at, align 8
  %15 = load ptr, ptr %end, align 8
  %cmp8 = icmp ult ptr %14, %15
  br label %land.end

land.end:
  %16 = phi i1 [ false, %for.cond ], [ %cmp8, %land.rhs ]
  br i1 %16, label %for.body, label %for.end

for.body:
  %17 = load ptr, ptr %at, align 8
  %18 = load i32, ptr %bytes, align 4
  %19 = load i32, ptr %is_signed, align 4
  %20 = load i32, ptr %size, align 4
  %call10 = call i32 @is_index(ptr %17, i32 %18, i32 %19, i32 %20)
  %tobool11 = icmp ne i32 %call10, 0
  br i1 %tobool11, label %if.then, label %if.end

if.then:
  br label %for.inc

if.end:
  %21 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %21, ptr %words)
  call void @put(ptr %words, ptr @.str.111)
  %22 = load ptr, ptr %net.addr, align 8
  %23 = load ptr, ptr %net.addr, align 8
  %24 = load i32, ptr %tensor, align 4
  %call12 = call i32 @tensor_word(ptr %23, i32 %24, i32 6)
  %call13 = call ptr @text(ptr %22, i32 %call12)
  call void @put(ptr %words, ptr %call13)
  call void @put(ptr %words, ptr @.str.112)
  %25 = load i32, ptr %size, align 4
  %conv14 = zext i32 %25 to i64
  call void @put_number(ptr %words, i64 %conv14)
  call void @put(ptr %words, ptr @.str.113)
  %26 = load i32, ptr %size, align 4
  %sub15 = sub i32 %26, 1
  %conv16 = zext i32 %sub15 to i64
  call void @put_number(ptr %words, i64 %conv16)
  call void @put(ptr %words, ptr @.str.114)
  store i32 5, ptr %retval, align 4
  br label %return

for.inc:
  %27 = load i32, ptr %bytes, align 4
  %28 = load ptr, ptr %at, align 8
  %idx.ext = zext i32 %27 to i64
  %add.ptr17 = getelementptr inbounds i8, ptr %28, i64 %idx.ext
  store ptr %add.ptr17, ptr %at, align 8
  br label %for.cond

for.end:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %29 = load i32, ptr %retval, align 4
  ret i32 %29
}

define internal i32 @run_steps(ptr %net) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step = alloca i32, align 4
  %status = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 0, ptr %step, align 4
  br label %while.cond

while.cond:
  %0 = load i32, ptr %step, align 4
  %1 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 4
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %2 = load i32, ptr %count, align 8
  %cmp = icmp ult i32 %0, %2
  br i1 %cmp, label %while.body, label %while.end

while.body:
  %3 = load ptr, ptr %net.addr, align 8
  %call = call i32 @do_step(ptr %3, ptr %step)
  store i32 %call, ptr %status, align 4
  %4 = load i32, ptr %status, align 4
  %tobool = icmp ne i32 %4, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  %5 = load i32, ptr %status, align 4
  store i32 %5, ptr %retval, align 4
  br label %return

if.end:
  br label %while.cond

while.end:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %6 = load i32, ptr %retval, align 4
  ret i32 %6
}

define internal i32 @is_text(ptr %net, i32 %place) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %place.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %place, ptr %place.addr, align 4
  %0 = load i32, ptr %place.addr, align 4
  %1 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 9
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %2 = load i32, ptr %count, align 8
  %cmp = icmp ult i32 %0, %2
  %conv = zext i1 %cmp to i32
  ret i32 %conv
}

define internal i64 @tensor_offset(ptr %net, i32 %tensor) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call ptr @entry(ptr %0, i32 0, i32 %1, i32 7)
  %add.ptr = getelementptr inbounds i8, ptr %call, i64 0
  %call1 = call i64 @size_at(ptr %add.ptr)
  ret i64 %call1
}

define internal i64 @tensor_bytes(ptr %net, i32 %tensor) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call ptr @entry(ptr %0, i32 0, i32 %1, i32 7)
  %add.ptr = getelementptr inbounds i8, ptr %call, i64 8
  %call1 = call i64 @size_at(ptr %add.ptr)
  ret i64 %call1
}

define internal i32 @tensor_type(ptr %net, i32 %tensor) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call i32 @tensor_word(ptr %0, i32 %1, i32 4)
  %and = and i32 %call, 255
  ret i32 %and
}

define internal i32 @tensor_rank(ptr %net, i32 %tensor) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call i32 @tensor_word(ptr %0, i32 %1, i32 4)
  %shr = lshr i32 %call, 8
  ret i32 %shr
}

define internal i32 @tensor_size(ptr %net, i32 %tensor, i32 %axis) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %axis.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  store i32 %axis, ptr %axis.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %net.addr, align 8
  %2 = load i32, ptr %tensor.addr, align 4
  %call = call i32 @tensor_word(ptr %1, i32 %2, i32 5)
  %3 = load i32, ptr %axis.addr, align 4
  %add = add i32 %call, %3
  %call1 = call i32 @word(ptr %0, i32 1, i32 %add)
  ret i32 %call1
}

define internal i32 @check_shown(ptr %net, i32 %tensor) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call i32 @is_known(ptr %0, i32 %1)
  %tobool = icmp ne i32 %call, 0
  br i1 %tobool, label %if.end, label %if.then

if.then:
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %tensor.addr, align 4
  %conv = zext i32 %3 to i64
  %call1 = call i32 @wrong(ptr %2, ptr @.str.54, ptr @.str.55, i64 %conv)
  store i32 %call1, ptr %retval, align 4
  br label %return

if.end:
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %tensor.addr, align 4
  %call2 = call i32 @tensor_rank(ptr %4, i32 %5)
  %cmp = icmp ugt i32 %call2, 8
  br i1 %cmp, label %if.then4, label %if.end8

if.then4:
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load ptr, ptr %net.addr, align 8
  %8 = load i32, ptr %tensor.addr, align 4
  %call5 = call i32 @tensor_rank(ptr %7, i32 %8)
  %conv6 = zext i32 %call5 to i64
  %call7 = call i32 @wrong(ptr %6, ptr @.str.54, ptr @.str.56, i64 %conv6)
  store i32 %call7, ptr %retval, align 4
  br label %return

if.end8:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %9 = load i32, ptr %retval, align 4
  ret i32 %9
}

define internal i32 @is_known(ptr %net, i32 %tensor) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load i32, ptr %tensor.addr, align 4
  %1 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 0
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %2 = load i32, ptr %count, align 8
  %cmp = icmp ult i32 %0, %2
  %conv = zext i1 %cmp to i32
  ret i32 %conv
}

define internal i32 @is_single(ptr %net, i32 %tensor, i32 %type) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %type.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  store i32 %type, ptr %type.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call i32 @is_known(ptr %0, i32 %1)
  %tobool = icmp ne i32 %call, 0
  br i1 %tobool, label %land.lhs.true, label %land.end

land.lhs.true:
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %tensor.addr, align 4
  %call1 = call i32 @tensor_type(ptr %2, i32 %3)
  %4 = load i32, ptr %type.addr, align 4
  %cmp = icmp eq i32 %call1, %4
  br i1 %cmp, label %land.rhs, label %land.end

land.rhs:
  %5 = load ptr, ptr %net.addr, align 8
  %6 = load i32, ptr %tensor.addr, align 4
  %call2 = call i64 @tensor_bytes(ptr %5, i32 %6)
  %7 = load i32, ptr %type.addr, align 4
  %call3 = call i32 @type_bytes(i32 %7)
  %conv = zext i32 %call3 to i64
  %cmp4 = icmp eq i64 %call2, %conv
  br label %land.end

land.end:
  %8 = phi i1 [ false, %land.lhs.true ], [ false, %entry ], [ %cmp4, %land.rhs ]
  %land.ext = zext i1 %8 to i32
  ret i32 %land.ext
}

define internal i32 @step_arg(ptr %net, i32 %step, i32 %arg) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %arg.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  store i32 %arg, ptr %arg.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %net.addr, align 8
  %2 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_word(ptr %1, i32 %2, i32 2)
  %3 = load i32, ptr %arg.addr, align 4
  %add = add i32 %call, %3
  %call1 = call i32 @word(ptr %0, i32 5, i32 %add)
  ret i32 %call1
}

define internal i32 @check_host(ptr %net, i32 %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %function = alloca i32, align 4
  %args = alloca i32, align 4
  %code = alloca ptr, align 8
  %fits = alloca i32, align 4
  %arg = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_x(ptr %0, i32 %1, i32 0)
  store i32 %call, ptr %function, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %step.addr, align 4
  %call1 = call i32 @step_word(ptr %2, i32 %3, i32 3)
  store i32 %call1, ptr %args, align 4
  %4 = load i32, ptr %function, align 4
  %5 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %5, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 6
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %6 = load i32, ptr %count, align 8
  %cmp = icmp uge i32 %4, %6
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %7 = load ptr, ptr %net.addr, align 8
  %8 = load i32, ptr %step.addr, align 4
  %call2 = call i32 @fail_at_step(ptr %7, i32 1, i32 %8, ptr @.str.73, ptr @.str.67)
  store i32 %call2, ptr %retval, align 4
  br label %return

if.end:
  %9 = load ptr, ptr %net.addr, align 8
  %code3 = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 8
  %10 = load ptr, ptr %code3, align 8
  %functions = getelementptr inbounds %struct.vdla_code, ptr %10, i32 0, i32 0
  %11 = load ptr, ptr %functions, align 8
  %12 = load i32, ptr %function, align 4
  %idxprom = zext i32 %12 to i64
  %arrayidx4 = getelementptr inbounds %struct.vdla_function, ptr %11, i64 %idxprom
  store ptr %arrayidx4, ptr %code, align 8
  %13 = load ptr, ptr %code, align 8
  %buffers = getelementptr inbounds %struct.vdla_function, ptr %13, i32 0, i32 3
  %14 = load i64, ptr %buffers, align 8
  %15 = load i32, ptr %args, align 4
  %conv = zext i32 %15 to i64
  %cmp5 = icmp eq i64 %14, %conv
  %conv6 = zext i1 %cmp5 to i32
  store i32 %conv6, ptr %fits, align 4
  store i32 0, ptr %arg, align 4
  br label %for.cond

for.cond:
  %16 = load i32, ptr %fits, align 4
  %tobool = icmp ne i32 %16, 0
  br i1 %tobool, label %land.rhs, label %land.end

land.rhs:
  %17 = load i32, ptr %arg, align 4
  %18 = load i32, ptr %args, align 4
  %cmp7 = icmp ult i32 %17, %18
  br label %land.end

land.end:
  %19 = phi i1 [ false, %for.cond ], [ %cmp7, %land.rhs ]
  br i1 %19, label %for.body, label %for.end

for.body:
  %20 = load ptr, ptr %code, align 8
  %bytes = getelementptr inbounds %struct.vdla_function, ptr %20, i32 0, i32 2
  %21 = load ptr, ptr %bytes, align 8
  %22 = load i32, ptr %arg, align 4
  %idxprom9 = zext i32 %22 to i64
  %arrayidx10 = getelementptr inbounds i64, ptr %21, i64 %idxprom9
  %23 = load i64, ptr %arrayidx10, align 8
  %24 = load ptr, ptr %net.addr, align 8
  %25 = load ptr, ptr %net.addr, align 8
  %26 = load i32, ptr %step.addr, align 4
  %27 = load i32, ptr %arg, align 4
  %call11 = call i32 @step_arg(ptr %25, i32 %26, i32 %27)
  %call12 = call i64 @tensor_bytes(ptr %24, i32 %call11)
  %cmp13 = icmp eq i64 %23, %call12
  %conv14 = zext i1 %cmp13 to i32
  store i32 %conv14, ptr %fits, align 4
  br label %for.inc

for.inc:
  %28 = load i32, ptr %arg, align 4
  %inc = add i32 %28, 1
  store i32 %inc, ptr %arg, align 4
  br label %for.cond

for.end:
  %29 = load i32, ptr %fits, align 4
  %tobool15 = icmp ne i32 %29, 0
  br i1 %tobool15, label %if.end18, label %if.then16

if.then16:
  %30 = load ptr, ptr %net.addr, align 8
  %31 = load i32, ptr %step.addr, align 4
  %call17 = call i32 @fail_at_step(ptr %30, i32 1, i32 %31, ptr @.str.74, ptr @.str.35)
  store i32 %call17, ptr %retval, align 4
  br label %return

if.end18:
  %32 = load i32, ptr %args, align 4
  %33 = load ptr, ptr %net.addr, align 8
  %most_args = getelementptr inbounds %struct.vdla, ptr %33, i32 0, i32 19
  %34 = load i32, ptr %most_args, align 8
  %cmp19 = icmp ugt i32 %32, %34
  br i1 %cmp19, label %if.then21, label %if.end23

if.then21:
  %35 = load i32, ptr %args, align 4
  %36 = load ptr, ptr %net.addr, align 8
  %most_args22 = getelementptr inbounds %struct.vdla, ptr %36, i32 0, i32 19
  store i32 %35, ptr %most_args22, align 8
  br label %if.end23

if.end23:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %37 = load i32, ptr %retval, align 4
  ret i32 %37
}

define internal i32 @check_program(ptr %net, i32 %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %section = alloca i32, align 4
  %sections = alloca i32, align 4
  %expected = alloca ptr, align 8
  %bytes = alloca i64, align 8
  %data = alloca ptr, align 8
  %n = alloca i64, align 8
  %each = alloca i32, align 4
  %base = alloca i64, align 8
  %count19 = alloca i64, align 8
  %isa = alloca i32, align 4
  %config = alloca i32, align 4
  %first = alloca i32, align 4
  %ranges = alloca i32, align 4
  %given = alloca i32, align 4
  %wanted = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_x(ptr %0, i32 %1, i32 0)
  store i32 %call, ptr %section, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 8
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %3 = load i32, ptr %count, align 8
  store i32 %3, ptr %sections, align 4
  store ptr @.str.75, ptr %expected, align 8
  %4 = load i32, ptr %section, align 4
  %5 = load i32, ptr %sections, align 4
  %cmp = icmp uge i32 %4, %5
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load i32, ptr %section, align 4
  %mul = mul i32 4, %7
  %call1 = call i32 @word(ptr %6, i32 8, i32 %mul)
  %cmp2 = icmp ne i32 %call1, 2
  br i1 %cmp2, label %if.then, label %if.end

if.then:
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i32, ptr %step.addr, align 4
  %10 = load ptr, ptr %expected, align 8
  %call3 = call i32 @fail_at_step(ptr %8, i32 1, i32 %9, ptr %10, ptr @.str.17)
  store i32 %call3, ptr %retval, align 4
  br label %return

if.end:
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load i32, ptr %section, align 4
  %call4 = call ptr @section_data(ptr %11, i32 %12, ptr %bytes)
  store ptr %call4, ptr %data, align 8
  store i64 0, ptr %n, align 8
  br label %for.cond

for.cond:
  %13 = load i64, ptr %n, align 8
  %cmp5 = icmp ult i64 %13, 8
  br i1 %cmp5, label %for.body, label %for.end

for.body:
  %14 = load i64, ptr %bytes, align 8
  %cmp6 = icmp ult i64 %14, 32
  br i1 %cmp6, label %if.then13, label %lor.lhs.false7

lor.lhs.false7:
  %15 = load ptr, ptr %data, align 8
  %16 = load i64, ptr %n, align 8
  %arrayidx8 = getelementptr inbounds i8, ptr %15, i64 %16
  %17 = load i8, ptr %arrayidx8, align 1
  %conv = zext i8 %17 to i32
  %18 = load i64, ptr %n, align 8
  %arrayidx9 = getelementptr inbounds [8 x i8], ptr @check_program.MAGIC, i64 0, i64 %18
  %19 = load i8, ptr %arrayidx9, align 1
  %conv10 = zext i8 %19 to i32
  %cmp11 = icmp ne i32 %conv, %conv10
  br i1 %cmp11, label %if.then13, label %if.end15

if.then13:
  %20 = load ptr, ptr %net.addr, align 8
  %21 = load i32, ptr %step.addr, align 4
  %22 = load ptr, ptr %expected, align 8
  %call14 = call i32 @fail_at_step(ptr %20, i32 1, i32 %21, ptr %22, ptr @.str.8)
  store i32 %call14, ptr %retval, align 4
  br label %return

if.end15:
  br label %for.inc

for.inc:
  %23 = load i64, ptr %n, align 8
  %inc = add i64 %23, 1
  store i64 %inc, ptr %n, align 8
  br label %for.cond

for.end:
  %24 = load ptr, ptr %data, align 8
  %call16 = call i32 @instruction_bytes(ptr %24)
  store i32 %call16, ptr %each, align 4
  %25 = load ptr, ptr %data, align 8
  %call17 = call i32 @program_base(ptr %25)
  %conv18 = zext i32 %call17 to i64
  store i64 %conv18, ptr %base, align 8
  %26 = load ptr, ptr %data, align 8
  %call20 = call i32 @program_length(ptr %26)
  %conv21 = zext i32 %call20 to i64
  store i64 %conv21, ptr %count19, align 8
  %27 = load ptr, ptr %data, align 8
  %arrayidx22 = getelementptr inbounds i8, ptr %27, i64 8
  %28 = load i8, ptr %arrayidx22, align 1
  %conv23 = zext i8 %28 to i32
  %29 = load ptr, ptr %data, align 8
  %arrayidx24 = getelementptr inbounds i8, ptr %29, i64 9
  %30 = load i8, ptr %arrayidx24, align 1
  %conv25 = zext i8 %30 to i32
  %shl = shl i32 %conv25, 8
  %or = or i32 %conv23, %shl
  %cmp26 = icmp ne i32 %or, 2
  br i1 %cmp26, label %if.then35, label %lor.lhs.false28

lor.lhs.false28:
  %31 = load i32, ptr %each, align 4
  %cmp29 = icmp eq i32 %31, 0
  br i1 %cmp29, label %if.then35, label %lor.lhs.false31

lor.lhs.false31:
  %32 = load i64, ptr %count19, align 8
  %33 = load i64, ptr %bytes, align 8
  %sub = sub i64 %33, 32
  %34 = load i32, ptr %each, align 4
  %conv32 = zext i32 %34 to i64
  %div = udiv i64 %sub, %conv32
  %cmp33 = icmp ugt i64 %32, %div
  br i1 %cmp33, label %if.then35, label %if.end37

if.then35:
  %35 = load ptr, ptr %net.addr, align 8
  %36 = load i32, ptr %step.addr, align 4
  %37 = load ptr, ptr %expected, align 8
  %call36 = call i32 @fail_at_step(ptr %35, i32 1, i32 %36, ptr %37, ptr @.str.76)
  store i32 %call36, ptr %retval, align 4
  br label %return

if.end37:
  %38 = load i64, ptr %base, align 8
  %39 = load ptr, ptr %net.addr, align 8
  %dram_bytes = getelementptr inbounds %struct.vdla, ptr %39, i32 0, i32 4
  %40 = load i64, ptr %dram_bytes, align 8
  %cmp38 = icmp ugt i64 %38, %40
  br i1 %cmp38, label %if.then47, label %lor.lhs.false40

lor.lhs.false40:
  %41 = load i64, ptr %count19, align 8
  %42 = load i32, ptr %each, align 4
  %conv41 = zext i32 %42 to i64
  %mul42 = mul i64 %41, %conv41
  %43 = load ptr, ptr %net.addr, align 8
  %dram_bytes43 = getelementptr inbounds %struct.vdla, ptr %43, i32 0, i32 4
  %44 = load i64, ptr %dram_bytes43, align 8
  %45 = load i64, ptr %base, align 8
  %sub44 = sub i64 %44, %45
  %cmp45 = icmp ugt i64 %mul42, %sub44
  br i1 %cmp45, label %if.then47, label %if.end49

if.then47:
  %46 = load ptr, ptr %net.addr, align 8
  %47 = load i32, ptr %step.addr, align 4
  %call48 = call i32 @fail_at_step(ptr %46, i32 1, i32 %47, ptr @.str.77, ptr @.str.78)
  store i32 %call48, ptr %retval, align 4
  br label %return

if.end49:
  %48 = load ptr, ptr %data, align 8
  %arrayidx50 = getelementptr inbounds i8, ptr %48, i64 12
  %49 = load i8, ptr %arrayidx50, align 1
  %conv51 = zext i8 %49 to i32
  %shl52 = shl i32 %conv51, 24
  %50 = load ptr, ptr %data, align 8
  %arrayidx53 = getelementptr inbounds i8, ptr %50, i64 13
  %51 = load i8, ptr %arrayidx53, align 1
  %conv54 = zext i8 %51 to i32
  %shl55 = shl i32 %conv54, 16
  %or56 = or i32 %shl52, %shl55
  %52 = load ptr, ptr %data, align 8
  %arrayidx57 = getelementptr inbounds i8, ptr %52, i64 14
  %53 = load i8, ptr %arrayidx57, align 1
  %conv58 = zext i8 %53 to i32
  %shl59 = shl i32 %conv58, 8
  %or60 = or i32 %or56, %shl59
  %54 = load ptr, ptr %data, align 8
  %arrayidx61 = getelementptr inbounds i8, ptr %54, i64 15
  %55 = load i8, ptr %arrayidx61, align 1
  %conv62 = zext i8 %55 to i32
  %or63 = or i32 %or60, %conv62
  store i32 %or63, ptr %isa, align 4
  %56 = load ptr, ptr %data, align 8
  %arrayidx64 = getelementptr inbounds i8, ptr %56, i64 16
  %57 = load i8, ptr %arrayidx64, align 1
  %conv65 = zext i8 %57 to i32
  %shl66 = shl i32 %conv65, 24
  %58 = load ptr, ptr %data, align 8
  %arrayidx67 = getelementptr inbounds i8, ptr %58, i64 17
  %59 = load i8, ptr %arrayidx67, align 1
  %conv68 = zext i8 %59 to i32
  %shl69 = shl i32 %conv68, 16
  %or70 = or i32 %shl66, %shl69
  %60 = load ptr, ptr %data, align 8
  %arrayidx71 = getelementptr inbounds i8, ptr %60, i64 18
  %61 = load i8, ptr %arrayidx71, align 1
  %conv72 = zext i8 %61 to i32
  %shl73 = shl i32 %conv72, 8
  %or74 = or i32 %or70, %shl73
  %62 = load ptr, ptr %data, align 8
  %arrayidx75 = getelementptr inbounds i8, ptr %62, i64 19
  %63 = load i8, ptr %arrayidx75, align 1
  %conv76 = zext i8 %63 to i32
  %or77 = or i32 %or74, %conv76
  store i32 %or77, ptr %config, align 4
  %64 = load i32, ptr %isa, align 4
  %65 = load ptr, ptr %net.addr, align 8
  %isa78 = getelementptr inbounds %struct.vdla, ptr %65, i32 0, i32 6
  %66 = load i32, ptr %isa78, align 8
  %cmp79 = icmp ne i32 %64, %66
  br i1 %cmp79, label %if.then85, label %lor.lhs.false81

lor.lhs.false81:
  %67 = load i32, ptr %config, align 4
  %68 = load ptr, ptr %net.addr, align 8
  %config82 = getelementptr inbounds %struct.vdla, ptr %68, i32 0, i32 7
  %69 = load i32, ptr %config82, align 4
  %cmp83 = icmp ne i32 %67, %69
  br i1 %cmp83, label %if.then85, label %if.end87

if.then85:
  %70 = load ptr, ptr %net.addr, align 8
  %71 = load i32, ptr %step.addr, align 4
  %call86 = call i32 @fail_at_step(ptr %70, i32 1, i32 %71, ptr @.str.79, ptr @.str.67)
  store i32 %call86, ptr %retval, align 4
  br label %return

if.end87:
  %72 = load ptr, ptr %net.addr, align 8
  %73 = load i32, ptr %step.addr, align 4
  %call88 = call i32 @step_x(ptr %72, i32 %73, i32 1)
  store i32 %call88, ptr %first, align 4
  %74 = load ptr, ptr %net.addr, align 8
  %lists89 = getelementptr inbounds %struct.vdla, ptr %74, i32 0, i32 2
  %arrayidx90 = getelementptr inbounds [10 x %struct.list], ptr %lists89, i64 0, i64 7
  %count91 = getelementptr inbounds %struct.list, ptr %arrayidx90, i32 0, i32 1
  %75 = load i32, ptr %count91, align 8
  store i32 %75, ptr %ranges, align 4
  %76 = load ptr, ptr %net.addr, align 8
  %77 = load i32, ptr %step.addr, align 4
  %call92 = call i32 @step_x(ptr %76, i32 %77, i32 2)
  store i32 %call92, ptr %given, align 4
  %78 = load ptr, ptr %net.addr, align 8
  %79 = load i32, ptr %step.addr, align 4
  %call93 = call i32 @step_x(ptr %78, i32 %79, i32 3)
  store i32 %call93, ptr %wanted, align 4
  %80 = load i32, ptr %first, align 4
  %81 = load i32, ptr %ranges, align 4
  %cmp94 = icmp ugt i32 %80, %81
  br i1 %cmp94, label %if.then105, label %lor.lhs.false96

lor.lhs.false96:
  %82 = load i32, ptr %given, align 4
  %83 = load i32, ptr %ranges, align 4
  %84 = load i32, ptr %first, align 4
  %sub97 = sub i32 %83, %84
  %cmp98 = icmp ugt i32 %82, %sub97
  br i1 %cmp98, label %if.then105, label %lor.lhs.false100

lor.lhs.false100:
  %85 = load i32, ptr %wanted, align 4
  %86 = load i32, ptr %ranges, align 4
  %87 = load i32, ptr %first, align 4
  %sub101 = sub i32 %86, %87
  %88 = load i32, ptr %given, align 4
  %sub102 = sub i32 %sub101, %88
  %cmp103 = icmp ugt i32 %85, %sub102
  br i1 %cmp103, label %if.then105, label %if.end107

if.then105:
  %89 = load ptr, ptr %net.addr, align 8
  %90 = load i32, ptr %step.addr, align 4
  %call106 = call i32 @fail_at_step(ptr %89, i32 1, i32 %90, ptr @.str.80, ptr @.str.35)
  store i32 %call106, ptr %retval, align 4
  br label %return

if.end107:
  %91 = load ptr, ptr %net.addr, align 8
  %programs = getelementptr inbounds %struct.vdla, ptr %91, i32 0, i32 18
  %92 = load i32, ptr %programs, align 4
  %add = add i32 %92, 1
  store i32 %add, ptr %programs, align 4
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %93 = load i32, ptr %retval, align 4
  ret i32 %93
}

define internal i32 @check_copy(ptr %net, i32 %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %way = alloca i32, align 4
  %turn = alloca i32, align 4
  %source = alloca i32, align 4
  %target = alloca i32, align 4
  %from = alloca i64, align 8
  %to = alloca i64, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_x(ptr %0, i32 %1, i32 0)
  store i32 %call, ptr %way, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %step.addr, align 4
  %call1 = call i32 @step_x(ptr %2, i32 %3, i32 1)
  store i32 %call1, ptr %turn, align 4
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %step.addr, align 4
  %call2 = call i32 @step_word(ptr %4, i32 %5, i32 3)
  %cmp = icmp ne i32 %call2, 2
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %6 = load i32, ptr %way, align 4
  %cmp3 = icmp ugt i32 %6, 2
  br i1 %cmp3, label %if.then, label %lor.lhs.false4

lor.lhs.false4:
  %7 = load i32, ptr %way, align 4
  %cmp5 = icmp ne i32 %7, 0
  br i1 %cmp5, label %land.lhs.true, label %if.end

land.lhs.true:
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i32, ptr %turn, align 4
  %call6 = call i32 @is_single(ptr %8, i32 %9, i32 7)
  %tobool = icmp ne i32 %call6, 0
  br i1 %tobool, label %if.end, label %if.then

if.then:
  %10 = load ptr, ptr %net.addr, align 8
  %11 = load i32, ptr %step.addr, align 4
  %call7 = call i32 @fail_at_step(ptr %10, i32 1, i32 %11, ptr @.str.81, ptr @.str.35)
  store i32 %call7, ptr %retval, align 4
  br label %return

if.end:
  %12 = load ptr, ptr %net.addr, align 8
  %13 = load i32, ptr %step.addr, align 4
  %call8 = call i32 @step_arg(ptr %12, i32 %13, i32 0)
  store i32 %call8, ptr %source, align 4
  %14 = load ptr, ptr %net.addr, align 8
  %15 = load i32, ptr %step.addr, align 4
  %call9 = call i32 @step_arg(ptr %14, i32 %15, i32 1)
  store i32 %call9, ptr %target, align 4
  %16 = load i32, ptr %way, align 4
  %cmp10 = icmp eq i32 %16, 1
  br i1 %cmp10, label %cond.true, label %cond.false

cond.true:
  %17 = load ptr, ptr %net.addr, align 8
  %18 = load i32, ptr %source, align 4
  %call11 = call i64 @element_bytes(ptr %17, i32 %18)
  br label %cond.end

cond.false:
  %19 = load ptr, ptr %net.addr, align 8
  %20 = load i32, ptr %source, align 4
  %call12 = call i64 @tensor_bytes(ptr %19, i32 %20)
  br label %cond.end

cond.end:
  %cond = phi i64 [ %call11, %cond.true ], [ %call12, %cond.false ]
  store i64 %cond, ptr %from, align 8
  %21 = load i32, ptr %way, align 4
  %cmp13 = icmp eq i32 %21, 2
  br i1 %cmp13, label %cond.true14, label %cond.false16

cond.true14:
  %22 = load ptr, ptr %net.addr, align 8
  %23 = load i32, ptr %target, align 4
  %call15 = call i64 @element_bytes(ptr %22, i32 %23)
  br label %cond.end18

cond.false16:
  %24 = load ptr, ptr %net.addr, align 8
  %25 = load i32, ptr %target, align 4
  %call17 = call i64 @tensor_bytes(ptr %24, i32 %25)
  br label %cond.end18

cond.end18:
  %cond19 = phi i64 [ %call15, %cond.true14 ], [ %call17, %cond.false16 ]
  store i64 %cond19, ptr %to, align 8
  %26 = load i64, ptr %from, align 8
  %27 = load i64, ptr %to, align 8
  %cmp20 = icmp ne i64 %26, %27
  br i1 %cmp20, label %if.then21, label %if.end23

if.then21:
  %28 = load ptr, ptr %net.addr, align 8
  %29 = load i32, ptr %step.addr, align 4
  %call22 = call i32 @fail_at_step(ptr %28, i32 1, i32 %29, ptr @.str.82, ptr @.str.35)
  store i32 %call22, ptr %retval, align 4
  br label %return

if.end23:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %30 = load i32, ptr %retval, align 4
  ret i32 %30
}

define internal i32 @check_jump(ptr %net, i32 %step, i32 %kind) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %kind.addr = alloca i32, align 4
  %to = alloca i32, align 4
  %steps = alloca i32, align 4
  %named = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  store i32 %kind, ptr %kind.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_x(ptr %0, i32 %1, i32 0)
  store i32 %call, ptr %to, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 4
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %3 = load i32, ptr %count, align 8
  store i32 %3, ptr %steps, align 4
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %step.addr, align 4
  %call1 = call i32 @step_x(ptr %4, i32 %5, i32 1)
  store i32 %call1, ptr %named, align 4
  %6 = load i32, ptr %to, align 4
  %7 = load i32, ptr %steps, align 4
  %cmp = icmp ugt i32 %6, %7
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i32, ptr %step.addr, align 4
  %call2 = call i32 @fail_at_step(ptr %8, i32 1, i32 %9, ptr @.str.83, ptr @.str.17)
  store i32 %call2, ptr %retval, align 4
  br label %return

if.end:
  %10 = load i32, ptr %kind.addr, align 4
  %cmp3 = icmp eq i32 %10, 10
  br i1 %cmp3, label %if.then4, label %if.end6

if.then4:
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load i32, ptr %step.addr, align 4
  %call5 = call i32 @check_call(ptr %11, i32 %12)
  store i32 %call5, ptr %retval, align 4
  br label %return

if.end6:
  %13 = load i32, ptr %kind.addr, align 4
  %cmp7 = icmp eq i32 %13, 8
  br i1 %cmp7, label %land.lhs.true, label %if.end11

land.lhs.true:
  %14 = load i32, ptr %to, align 4
  %15 = load i32, ptr %step.addr, align 4
  %cmp8 = icmp ule i32 %14, %15
  br i1 %cmp8, label %if.then9, label %if.end11

if.then9:
  %16 = load ptr, ptr %net.addr, align 8
  %17 = load i32, ptr %step.addr, align 4
  %call10 = call i32 @fail_at_step(ptr %16, i32 1, i32 %17, ptr @.str.84, ptr @.str.85)
  store i32 %call10, ptr %retval, align 4
  br label %return

if.end11:
  %18 = load i32, ptr %kind.addr, align 4
  %cmp12 = icmp eq i32 %18, 8
  br i1 %cmp12, label %land.lhs.true13, label %if.end19

land.lhs.true13:
  %19 = load i32, ptr %named, align 4
  %cmp14 = icmp ne i32 %19, -1
  br i1 %cmp14, label %land.lhs.true15, label %if.end19

land.lhs.true15:
  %20 = load ptr, ptr %net.addr, align 8
  %21 = load i32, ptr %named, align 4
  %call16 = call i32 @is_single(ptr %20, i32 %21, i32 0)
  %tobool = icmp ne i32 %call16, 0
  br i1 %tobool, label %if.end19, label %if.then17

if.then17:
  %22 = load ptr, ptr %net.addr, align 8
  %23 = load i32, ptr %step.addr, align 4
  %call18 = call i32 @fail_at_step(ptr %22, i32 1, i32 %23, ptr @.str.59, ptr @.str.67)
  store i32 %call18, ptr %retval, align 4
  br label %return

if.end19:
  %24 = load i32, ptr %kind.addr, align 4
  %cmp20 = icmp eq i32 %24, 9
  br i1 %cmp20, label %land.lhs.true21, label %if.end30

land.lhs.true21:
  %25 = load ptr, ptr %net.addr, align 8
  %26 = load i32, ptr %named, align 4
  %call22 = call i32 @is_single(ptr %25, i32 %26, i32 7)
  %tobool23 = icmp ne i32 %call22, 0
  br i1 %tobool23, label %lor.lhs.false, label %if.then28

lor.lhs.false:
  %27 = load i32, ptr %to, align 4
  %28 = load i32, ptr %step.addr, align 4
  %cmp24 = icmp ugt i32 %27, %28
  br i1 %cmp24, label %if.then28, label %lor.lhs.false25

lor.lhs.false25:
  %29 = load ptr, ptr %net.addr, align 8
  %30 = load i32, ptr %step.addr, align 4
  %call26 = call i32 @step_x(ptr %29, i32 %30, i32 2)
  %cmp27 = icmp eq i32 %call26, 0
  br i1 %cmp27, label %if.then28, label %if.end30

if.then28:
  %31 = load ptr, ptr %net.addr, align 8
  %32 = load i32, ptr %step.addr, align 4
  %call29 = call i32 @fail_at_step(ptr %31, i32 1, i32 %32, ptr @.str.86, ptr @.str.35)
  store i32 %call29, ptr %retval, align 4
  br label %return

if.end30:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %33 = load i32, ptr %retval, align 4
  ret i32 %33
}

define internal i32 @instruction_bytes(ptr %program) nounwind {
entry:
  %program.addr = alloca ptr, align 8
  store ptr %program, ptr %program.addr, align 8
  %0 = load ptr, ptr %program.addr, align 8
  %arrayidx = getelementptr inbounds i8, ptr %0, i64 10
  %1 = load i8, ptr %arrayidx, align 1
  %conv = zext i8 %1 to i32
  %2 = load ptr, ptr %program.addr, align 8
  %arrayidx1 = getelementptr inbounds i8, ptr %2, i64 11
  %3 = load i8, ptr %arrayidx1, align 1
  %conv2 = zext i8 %3 to i32
  %shl = shl i32 %conv2, 8
  %or = or i32 %conv, %shl
  ret i32 %or
}

define internal i32 @program_base(ptr %program) nounwind {
entry:
  %program.addr = alloca ptr, align 8
  store ptr %program, ptr %program.addr, align 8
  %0 = load ptr, ptr %program.addr, align 8
  %add.ptr = getelementptr inbounds i8, ptr %0, i64 20
  %call = call i32 @word_at(ptr %add.ptr)
  ret i32 %call
}

define internal i32 @program_length(ptr %program) nounwind {
entry:
  %program.addr = alloca ptr, align 8
  store ptr %program, ptr %program.addr, align 8
  %0 = load ptr, ptr %program.addr, align 8
  %add.ptr = getelementptr inbounds i8, ptr %0, i64 24
  %call = call i32 @word_at(ptr %add.ptr)
  ret i32 %call
}

define internal i64 @element_bytes(ptr %net, i32 %tensor) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %count = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call i32 @tensor_rank(ptr %0, i32 %1)
  %tobool = icmp ne i32 %call, 0
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %tensor.addr, align 4
  %call1 = call i32 @tensor_size(ptr %2, i32 %3, i32 0)
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi i32 [ %call1, %cond.true ], [ 1, %cond.false ]
  store i32 %cond, ptr %count, align 4
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %tensor.addr, align 4
  %call2 = call i64 @tensor_bytes(ptr %4, i32 %5)
  %6 = load i32, ptr %count, align 4
  %tobool3 = icmp ne i32 %6, 0
  br i1 %tobool3, label %cond.true4, label %cond.false5

cond.true4:
  %7 = load i32, ptr %count, align 4
  br label %cond.end6

cond.false5:
  br label %cond.end6

cond.end6:
  %cond7 = phi i32 [ %7, %cond.true4 ], [ 1, %cond.false5 ]
  %conv = zext i32 %cond7 to i64
  %div = udiv i64 %call2, %conv
  ret i64 %div
}

define internal i32 @check_call(ptr %net, i32 %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %saved = alloca i64, align 8
  %arg = alloca i32, align 4
  %bytes = alloca i64, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  store i64 4, ptr %saved, align 8
  store i32 0, ptr %arg, align 4
  br label %for.cond

for.cond:
  %0 = load i32, ptr %arg, align 4
  %1 = load ptr, ptr %net.addr, align 8
  %2 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_word(ptr %1, i32 %2, i32 3)
  %cmp = icmp ult i32 %0, %call
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %step.addr, align 4
  %6 = load i32, ptr %arg, align 4
  %call1 = call i32 @step_arg(ptr %4, i32 %5, i32 %6)
  %call2 = call i64 @tensor_bytes(ptr %3, i32 %call1)
  store i64 %call2, ptr %bytes, align 8
  %7 = load i64, ptr %bytes, align 8
  %8 = load i64, ptr %saved, align 8
  %sub = sub i64 18446744073709551, %8
  %cmp3 = icmp ugt i64 %7, %sub
  br i1 %cmp3, label %if.then, label %if.end

if.then:
  %9 = load ptr, ptr %net.addr, align 8
  %10 = load i32, ptr %step.addr, align 4
  %call4 = call i32 @fail_at_step(ptr %9, i32 1, i32 %10, ptr @.str.87, ptr @.str.88)
  store i32 %call4, ptr %retval, align 4
  br label %return

if.end:
  %11 = load i64, ptr %bytes, align 8
  %12 = load i64, ptr %saved, align 8
  %add = add i64 %12, %11
  store i64 %add, ptr %saved, align 8
  br label %for.inc

for.inc:
  %13 = load i32, ptr %arg, align 4
  %inc = add i32 %13, 1
  store i32 %inc, ptr %arg, align 4
  br label %for.cond

for.end:
  %14 = load i64, ptr %saved, align 8
  %15 = load ptr, ptr %net.addr, align 8
  %most_saved = getelementptr inbounds %struct.vdla, ptr %15, i32 0, i32 20
  %16 = load i64, ptr %most_saved, align 8
  %cmp5 = icmp ugt i64 %14, %16
  br i1 %cmp5, label %if.then6, label %if.end8

if.then6:
  %17 = load i64, ptr %saved, align 8
  %18 = load ptr, ptr %net.addr, align 8
  %most_saved7 = getelementptr inbounds %struct.vdla, ptr %18, i32 0, i32 20
  store i64 %17, ptr %most_saved7, align 8
  br label %if.end8

if.end8:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %19 = load i32, ptr %retval, align 4
  ret i32 %19
}

define internal i32 @constants_can_stay(ptr %net) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %n = alloca i32, align 4
  %n5 = alloca i32, align 4
  %n20 = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %board = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 9
  %1 = load ptr, ptr %board, align 8
  %tobool = icmp ne ptr %1, null
  br i1 %tobool, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %2 = load ptr, ptr %net.addr, align 8
  %sections = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 3
  %3 = load ptr, ptr %sections, align 8
  %4 = ptrtoint ptr %3 to i64
  %rem = urem i64 %4, 64
  %tobool1 = icmp ne i64 %rem, 0
  br i1 %tobool1, label %if.then, label %if.end

if.then:
  store i32 0, ptr %retval, align 4
  br label %return

if.end:
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %5 = load i32, ptr %n, align 4
  %6 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %6, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 0
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %7 = load i32, ptr %count, align 8
  %cmp = icmp ult i32 %5, %7
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i32, ptr %n, align 4
  %call = call i32 @is_in_constants(ptr %8, i32 %9, i32 0)
  %tobool2 = icmp ne i32 %call, 0
  br i1 %tobool2, label %if.then3, label %if.end4

if.then3:
  store i32 0, ptr %retval, align 4
  br label %return

if.end4:
  br label %for.inc

for.inc:
  %10 = load i32, ptr %n, align 4
  %inc = add i32 %10, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %n5, align 4
  br label %for.cond6

for.cond6:
  %11 = load i32, ptr %n5, align 4
  %12 = load ptr, ptr %net.addr, align 8
  %lists7 = getelementptr inbounds %struct.vdla, ptr %12, i32 0, i32 2
  %arrayidx8 = getelementptr inbounds [10 x %struct.list], ptr %lists7, i64 0, i64 2
  %count9 = getelementptr inbounds %struct.list, ptr %arrayidx8, i32 0, i32 1
  %13 = load i32, ptr %count9, align 8
  %cmp10 = icmp ult i32 %11, %13
  br i1 %cmp10, label %for.body11, label %for.end19

for.body11:
  %14 = load ptr, ptr %net.addr, align 8
  %15 = load ptr, ptr %net.addr, align 8
  %16 = load i32, ptr %n5, align 4
  %mul = mul i32 2, %16
  %add = add i32 %mul, 0
  %call12 = call i32 @word(ptr %15, i32 2, i32 %add)
  %call13 = call i32 @is_in_constants(ptr %14, i32 %call12, i32 1)
  %tobool14 = icmp ne i32 %call13, 0
  br i1 %tobool14, label %if.then15, label %if.end16

if.then15:
  store i32 0, ptr %retval, align 4
  br label %return

if.end16:
  br label %for.inc17

for.inc17:
  %17 = load i32, ptr %n5, align 4
  %inc18 = add i32 %17, 1
  store i32 %inc18, ptr %n5, align 4
  br label %for.cond6

for.end19:
  store i32 0, ptr %n20, align 4
  br label %for.cond21

for.cond21:
  %18 = load i32, ptr %n20, align 4
  %19 = load ptr, ptr %net.addr, align 8
  %lists22 = getelementptr inbounds %struct.vdla, ptr %19, i32 0, i32 2
  %arrayidx23 = getelementptr inbounds [10 x %struct.list], ptr %lists22, i64 0, i64 4
  %count24 = getelementptr inbounds %struct.list, ptr %arrayidx23, i32 0, i32 1
  %20 = load i32, ptr %count24, align 8
  %cmp25 = icmp ult i32 %18, %20
  br i1 %cmp25, label %for.body26, label %for.end33

for.body26:
  %21 = load ptr, ptr %net.addr, align 8
  %22 = load i32, ptr %n20, align 4
  %call27 = call i32 @writes_constants(ptr %21, i32 %22)
  %tobool28 = icmp ne i32 %call27, 0
  br i1 %tobool28, label %if.then29, label %if.end30

if.then29:
  store i32 0, ptr %retval, align 4
  br label %return

if.end30:
  br label %for.inc31

for.inc31:
  %23 = load i32, ptr %n20, align 4
  %inc32 = add i32 %23, 1
  store i32 %inc32, ptr %n20, align 4
  br label %for.cond21

for.end33:
  store i32 1, ptr %retval, align 4
  br label %return

return:
  %24 = load i32, ptr %retval, align 4
  ret i32 %24
}

define internal i32 @is_in_constants(ptr %net, i32 %tensor, i32 %is_written) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %is_written.addr = alloca i32, align 4
  %offset = alloca i64, align 8
  %ends_beyond = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  store i32 %is_written, ptr %is_written.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call i64 @tensor_offset(ptr %0, i32 %1)
  store i64 %call, ptr %offset, align 8
  %2 = load i64, ptr %offset, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load i32, ptr %tensor.addr, align 4
  %call1 = call i64 @tensor_bytes(ptr %3, i32 %4)
  %add = add i64 %2, %call1
  %5 = load ptr, ptr %net.addr, align 8
  %constant_bytes = getelementptr inbounds %struct.vdla, ptr %5, i32 0, i32 5
  %6 = load i64, ptr %constant_bytes, align 8
  %cmp = icmp ugt i64 %add, %6
  %conv = zext i1 %cmp to i32
  store i32 %conv, ptr %ends_beyond, align 4
  %7 = load i64, ptr %offset, align 8
  %8 = load ptr, ptr %net.addr, align 8
  %constant_bytes2 = getelementptr inbounds %struct.vdla, ptr %8, i32 0, i32 5
  %9 = load i64, ptr %constant_bytes2, align 8
  %cmp3 = icmp ult i64 %7, %9
  br i1 %cmp3, label %land.rhs, label %land.end

land.rhs:
  %10 = load i32, ptr %is_written.addr, align 4
  %tobool = icmp ne i32 %10, 0
  br i1 %tobool, label %lor.end, label %lor.rhs

lor.rhs:
  %11 = load i32, ptr %ends_beyond, align 4
  %tobool5 = icmp ne i32 %11, 0
  br label %lor.end

lor.end:
  %12 = phi i1 [ true, %land.rhs ], [ %tobool5, %lor.rhs ]
  br label %land.end

land.end:
  %13 = phi i1 [ false, %entry ], [ %12, %lor.end ]
  %land.ext = zext i1 %13 to i32
  ret i32 %land.ext
}

define internal i32 @writes_constants(ptr %net, i32 %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %kind = alloca i32, align 4
  %args = alloca i32, align 4
  %arg = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_word(ptr %0, i32 %1, i32 0)
  store i32 %call, ptr %kind, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %step.addr, align 4
  %call1 = call i32 @step_word(ptr %2, i32 %3, i32 3)
  store i32 %call1, ptr %args, align 4
  %4 = load i32, ptr %kind, align 4
  %cmp = icmp eq i32 %4, 9
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %5 = load ptr, ptr %net.addr, align 8
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load i32, ptr %step.addr, align 4
  %call2 = call i32 @step_x(ptr %6, i32 %7, i32 1)
  %call3 = call i32 @is_in_constants(ptr %5, i32 %call2, i32 1)
  store i32 %call3, ptr %retval, align 4
  br label %return

if.end:
  %8 = load i32, ptr %kind, align 4
  %cmp4 = icmp eq i32 %8, 10
  br i1 %cmp4, label %cond.true, label %lor.lhs.false

lor.lhs.false:
  %9 = load i32, ptr %args, align 4
  %cmp5 = icmp eq i32 %9, 0
  br i1 %cmp5, label %cond.true, label %cond.false

cond.true:
  br label %cond.end

cond.false:
  %10 = load i32, ptr %args, align 4
  %sub = sub i32 %10, 1
  br label %cond.end

cond.end:
  %cond = phi i32 [ 0, %cond.true ], [ %sub, %cond.false ]
  store i32 %cond, ptr %arg, align 4
  br label %for.cond

for.cond:
  %11 = load i32, ptr %arg, align 4
  %12 = load i32, ptr %args, align 4
  %cmp6 = icmp ult i32 %11, %12
  br i1 %cmp6, label %for.body, label %for.end

for.body:
  %13 = load ptr, ptr %net.addr, align 8
  %14 = load ptr, ptr %net.addr, align 8
  %15 = load i32, ptr %step.addr, align 4
  %16 = load i32, ptr %arg, align 4
  %call7 = call i32 @step_arg(ptr %14, i32 %15, i32 %16)
  %call8 = call i32 @is_in_constants(ptr %13, i32 %call7, i32 1)
  %tobool = icmp ne i32 %call8, 0
  br i1 %tobool, label %if.then9, label %if.end10

if.then9:
  store i32 1, ptr %retval, align 4
  br label %return

if.end10:
  br label %for.inc

for.inc:
  %17 = load i32, ptr %arg, align 4
  %inc = add i32 %17, 1
  store i32 %inc, ptr %arg, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %18 = load i32, ptr %retval, align 4
  ret i32 %18
}

define internal i32 @other(ptr %net, i32 %status, ptr %what, i32 %expected, i32 %found) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %status.addr = alloca i32, align 4
  %what.addr = alloca ptr, align 8
  %expected.addr = alloca i32, align 4
  %found.addr = alloca i32, align 4
  %words = alloca %struct.words, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %status, ptr %status.addr, align 4
  store ptr %what, ptr %what.addr, align 8
  store i32 %expected, ptr %expected.addr, align 4
  store i32 %found, ptr %found.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  call void @begin_error(ptr %0, ptr %words)
  call void @put(ptr %words, ptr @.str.96)
  %1 = load ptr, ptr %what.addr, align 8
  call void @put(ptr %words, ptr %1)
  call void @put(ptr %words, ptr @.str.97)
  %2 = load i32, ptr %expected.addr, align 4
  call void @put_hex(ptr %words, i32 %2)
  call void @put(ptr %words, ptr @.str.5)
  %3 = load i32, ptr %found.addr, align 4
  call void @put_hex(ptr %words, i32 %3)
  %4 = load i32, ptr %status.addr, align 4
  ret i32 %4
}

define internal i32 @write_register(ptr %net, i32 %offset, i32 %value) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %offset.addr = alloca i32, align 4
  %value.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %offset, ptr %offset.addr, align 4
  store i32 %value, ptr %value.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %board = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 9
  %1 = load ptr, ptr %board, align 8
  %write = getelementptr inbounds %struct.vdla_board, ptr %1, i32 0, i32 2
  %2 = load ptr, ptr %write, align 8
  %3 = load ptr, ptr %net.addr, align 8
  %board1 = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 9
  %4 = load ptr, ptr %board1, align 8
  %context = getelementptr inbounds %struct.vdla_board, ptr %4, i32 0, i32 0
  %5 = load ptr, ptr %context, align 8
  %6 = load i32, ptr %offset.addr, align 4
  %7 = load i32, ptr %value.addr, align 4
  %call = call i32 %2(ptr %5, i32 %6, i32 %7)
  %tobool = icmp ne i32 %call, 0
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %8 = load ptr, ptr %net.addr, align 8
  %call2 = call i32 @silent(ptr %8)
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi i32 [ %call2, %cond.true ], [ 0, %cond.false ]
  ret i32 %cond
}

define internal i32 @is_index(ptr %at, i32 %bytes, i32 %is_signed, i32 %size) nounwind {
entry:
  %at.addr = alloca ptr, align 8
  %bytes.addr = alloca i32, align 4
  %is_signed.addr = alloca i32, align 4
  %size.addr = alloca i32, align 4
  %negative = alloca i32, align 4
  %value = alloca i64, align 8
  %n = alloca i32, align 4
  store ptr %at, ptr %at.addr, align 8
  store i32 %bytes, ptr %bytes.addr, align 4
  store i32 %is_signed, ptr %is_signed.addr, align 4
  store i32 %size, ptr %size.addr, align 4
  %0 = load i32, ptr %is_signed.addr, align 4
  %tobool = icmp ne i32 %0, 0
  br i1 %tobool, label %land.rhs, label %land.end

land.rhs:
  %1 = load ptr, ptr %at.addr, align 8
  %2 = load i32, ptr %bytes.addr, align 4
  %sub = sub i32 %2, 1
  %idxprom = zext i32 %sub to i64
  %arrayidx = getelementptr inbounds i8, ptr %1, i64 %idxprom
  %3 = load i8, ptr %arrayidx, align 1
  %conv = zext i8 %3 to i32
  %and = and i32 %conv, 128
  %tobool1 = icmp ne i32 %and, 0
  br label %land.end

land.end:
  %4 = phi i1 [ false, %entry ], [ %tobool1, %land.rhs ]
  %land.ext = zext i1 %4 to i32
  store i32 %land.ext, ptr %negative, align 4
  %5 = load i32, ptr %negative, align 4
  %tobool2 = icmp ne i32 %5, 0
  %6 = zext i1 %tobool2 to i64
  %cond = select i1 %tobool2, i64 -1, i64 0
  store i64 %cond, ptr %value, align 8
  %7 = load i32, ptr %bytes.addr, align 4
  store i32 %7, ptr %n, align 4
  br label %for.cond

for.cond:
  %8 = load i32, ptr %n, align 4
  %dec = add i32 %8, -1
  store i32 %dec, ptr %n, align 4
  %cmp = icmp ugt i32 %8, 0
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %9 = load i64, ptr %value, align 8
  %shl = shl i64 %9, 8
  %10 = load ptr, ptr %at.addr, align 8
  %11 = load i32, ptr %n, align 4
  %idxprom4 = zext i32 %11 to i64
  %arrayidx5 = getelementptr inbounds i8, ptr %10, i64 %idxprom4
  %12 = load i8, ptr %arrayidx5, align 1
  %conv6 = zext i8 %12 to i64
  %or = or i64 %shl, %conv6
  store i64 %or, ptr %value, align 8
  br label %for.cond

for.end:
  %13 = load i32, ptr %negative, align 4
  %tobool7 = icmp ne i32 %13, 0
  br i1 %tobool7, label %cond.true, label %cond.false

cond.true:
  %14 = load i64, ptr %value, align 8
  %not = xor i64 %14, -1
  %15 = load i32, ptr %size.addr, align 4
  %conv8 = zext i32 %15 to i64
  %cmp9 = icmp ult i64 %not, %conv8
  %conv10 = zext i1 %cmp9 to i32
  br label %cond.end

cond.false:
  %16 = load i64, ptr %value, align 8
  %17 = load i32, ptr %size.addr, align 4
  %conv11 = zext i32 %17 to i64
  %cmp12 = icmp ult i64 %16, %conv11
  %conv13 = zext i1 %cmp12 to i32
  br label %cond.end

cond.end:
  %cond14 = phi i32 [ %conv10, %cond.true ], [ %conv13, %cond.false ]
  ret i32 %cond14
}

define internal i32 @do_step(ptr %net, ptr %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca ptr, align 8
  %status = alloca i32, align 4
  %kind = alloca i32, align 4
  %target = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store ptr %step, ptr %step.addr, align 8
  store i32 0, ptr %status, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %step.addr, align 8
  %2 = load i32, ptr %1, align 4
  %call = call i32 @step_word(ptr %0, i32 %2, i32 0)
  store i32 %call, ptr %kind, align 4
  %3 = load i32, ptr %kind, align 4
  switch i32 %3, label %sw.default [
    i32 8, label %sw.bb
    i32 9, label %sw.bb2
    i32 10, label %sw.bb4
    i32 11, label %sw.bb6
    i32 0, label %sw.bb8
    i32 1, label %sw.bb9
    i32 6, label %sw.bb11
  ]

sw.bb:
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load ptr, ptr %step.addr, align 8
  %6 = load i32, ptr %5, align 4
  %call1 = call i32 @jump(ptr %4, i32 %6)
  %7 = load ptr, ptr %step.addr, align 8
  store i32 %call1, ptr %7, align 4
  store i32 0, ptr %retval, align 4
  br label %return

sw.bb2:
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load ptr, ptr %step.addr, align 8
  %call3 = call i32 @next(ptr %8, ptr %9)
  store i32 %call3, ptr %retval, align 4
  br label %return

sw.bb4:
  %10 = load ptr, ptr %net.addr, align 8
  %11 = load ptr, ptr %step.addr, align 8
  %call5 = call i32 @call(ptr %10, ptr %11)
  store i32 %call5, ptr %retval, align 4
  br label %return

sw.bb6:
  %12 = load ptr, ptr %net.addr, align 8
  %call7 = call i32 @come_back(ptr %12)
  %13 = load ptr, ptr %step.addr, align 8
  store i32 %call7, ptr %13, align 4
  store i32 0, ptr %retval, align 4
  br label %return

sw.bb8:
  %14 = load ptr, ptr %net.addr, align 8
  %15 = load ptr, ptr %step.addr, align 8
  %16 = load i32, ptr %15, align 4
  call void @call_function(ptr %14, i32 %16)
  br label %sw.epilog

sw.bb9:
  %17 = load ptr, ptr %net.addr, align 8
  %18 = load ptr, ptr %step.addr, align 8
  %19 = load i32, ptr %18, align 4
  %call10 = call i32 @run_program(ptr %17, i32 %19)
  store i32 %call10, ptr %status, align 4
  br label %sw.epilog

sw.bb11:
  %20 = load ptr, ptr %net.addr, align 8
  %21 = load ptr, ptr %step.addr, align 8
  %22 = load i32, ptr %21, align 4
  %call12 = call i32 @copy(ptr %20, i32 %22)
  store i32 %call12, ptr %status, align 4
  br label %sw.epilog

sw.default:
  %23 = load ptr, ptr %net.addr, align 8
  %24 = load ptr, ptr %step.addr, align 8
  %25 = load i32, ptr %24, align 4
  %call13 = call i32 @step_arg(ptr %23, i32 %25, i32 0)
  store i32 %call13, ptr %target, align 4
  %26 = load ptr, ptr %net.addr, align 8
  %27 = load i32, ptr %target, align 4
  %call14 = call ptr @tensor_data(ptr %26, i32 %27)
  %28 = load ptr, ptr %net.addr, align 8
  %29 = load i32, ptr %target, align 4
  %call15 = call i64 @tensor_bytes(ptr %28, i32 %29)
  call void @llvm.memset.p0.i64(ptr align 1 %call14, i8 0, i64 %call15, i1 false)
  br label %sw.epilog

sw.epilog:
  %30 = load ptr, ptr %step.addr, align 8
  %31 = load i32, ptr %30, align 4
  %add = add i32 %31, 1
  store i32 %add, ptr %30, align 4
  %32 = load i32, ptr %status, align 4
  store i32 %32, ptr %retval, align 4
  br label %return

return:
  %33 = load i32, ptr %retval, align 4
  ret i32 %33
}

define internal i32 @jump(ptr %net, i32 %step) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %condition = alloca i32, align 4
  %holds = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_x(ptr %0, i32 %1, i32 1)
  store i32 %call, ptr %condition, align 4
  %2 = load i32, ptr %condition, align 4
  %cmp = icmp eq i32 %2, -1
  br i1 %cmp, label %lor.end, label %lor.rhs

lor.rhs:
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load i32, ptr %condition, align 4
  %call1 = call ptr @tensor_data(ptr %3, i32 %4)
  %5 = load i8, ptr %call1, align 1
  %conv = zext i8 %5 to i32
  %cmp2 = icmp ne i32 %conv, 0
  %conv3 = zext i1 %cmp2 to i32
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load i32, ptr %step.addr, align 4
  %call4 = call i32 @step_x(ptr %6, i32 %7, i32 2)
  %cmp5 = icmp ne i32 %call4, 0
  %conv6 = zext i1 %cmp5 to i32
  %cmp7 = icmp eq i32 %conv3, %conv6
  br label %lor.end

lor.end:
  %8 = phi i1 [ true, %entry ], [ %cmp7, %lor.rhs ]
  %lor.ext = zext i1 %8 to i32
  store i32 %lor.ext, ptr %holds, align 4
  %9 = load i32, ptr %holds, align 4
  %tobool = icmp ne i32 %9, 0
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %10 = load ptr, ptr %net.addr, align 8
  %11 = load i32, ptr %step.addr, align 4
  %call9 = call i32 @step_x(ptr %10, i32 %11, i32 0)
  br label %cond.end

cond.false:
  %12 = load i32, ptr %step.addr, align 4
  %add = add i32 %12, 1
  br label %cond.end

cond.end:
  %cond = phi i32 [ %call9, %cond.true ], [ %add, %cond.false ]
  ret i32 %cond
}

define internal i32 @next(ptr %net, ptr %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca ptr, align 8
  %tensor = alloca i32, align 4
  %turn = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store ptr %step, ptr %step.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load ptr, ptr %step.addr, align 8
  %2 = load i32, ptr %1, align 4
  %call = call i32 @step_x(ptr %0, i32 %2, i32 1)
  store i32 %call, ptr %tensor, align 4
  %3 = load ptr, ptr %net.addr, align 8
  %4 = load i32, ptr %tensor, align 4
  %call1 = call i32 @turn_of(ptr %3, i32 %4)
  %add = add i32 %call1, 1
  store i32 %add, ptr %turn, align 4
  %5 = load ptr, ptr %net.addr, align 8
  %6 = load i32, ptr %tensor, align 4
  %7 = load i32, ptr %turn, align 4
  call void @set_turn(ptr %5, i32 %6, i32 %7)
  %8 = load i32, ptr %turn, align 4
  %9 = load ptr, ptr %net.addr, align 8
  %10 = load ptr, ptr %step.addr, align 8
  %11 = load i32, ptr %10, align 4
  %call2 = call i32 @step_x(ptr %9, i32 %11, i32 2)
  %cmp = icmp ult i32 %8, %call2
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %12 = load ptr, ptr %net.addr, align 8
  %13 = load ptr, ptr %step.addr, align 8
  %14 = load i32, ptr %13, align 4
  %call3 = call i32 @step_x(ptr %12, i32 %14, i32 0)
  %15 = load ptr, ptr %step.addr, align 8
  store i32 %call3, ptr %15, align 4
  store i32 0, ptr %retval, align 4
  br label %return

if.end:
  %16 = load ptr, ptr %net.addr, align 8
  %17 = load ptr, ptr %step.addr, align 8
  %18 = load i32, ptr %17, align 4
  %call4 = call i32 @step_x(ptr %16, i32 %18, i32 3)
  %tobool = icmp ne i32 %call4, 0
  br i1 %tobool, label %if.then5, label %if.end7

if.then5:
  %19 = load ptr, ptr %net.addr, align 8
  %20 = load ptr, ptr %step.addr, align 8
  %21 = load i32, ptr %20, align 4
  %call6 = call i32 @fail_at_step(ptr %19, i32 7, i32 %21, ptr @.str.115, ptr @.str.116)
  store i32 %call6, ptr %retval, align 4
  br label %return

if.end7:
  %22 = load ptr, ptr %step.addr, align 8
  %23 = load i32, ptr %22, align 4
  %add8 = add i32 %23, 1
  store i32 %add8, ptr %22, align 4
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %24 = load i32, ptr %retval, align 4
  ret i32 %24
}

define internal i32 @call(ptr %net, ptr %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca ptr, align 8
  %at = alloca ptr, align 8
  %arg = alloca i32, align 4
  %tensor = alloca i32, align 4
  %n = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store ptr %step, ptr %step.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %frames = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 15
  %1 = load ptr, ptr %frames, align 8
  %2 = load ptr, ptr %net.addr, align 8
  %frames_used = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 16
  %3 = load i64, ptr %frames_used, align 8
  %add.ptr = getelementptr inbounds i8, ptr %1, i64 %3
  store ptr %add.ptr, ptr %at, align 8
  %4 = load ptr, ptr %net.addr, align 8
  %calls = getelementptr inbounds %struct.vdla, ptr %4, i32 0, i32 17
  %5 = load i32, ptr %calls, align 8
  %cmp = icmp eq i32 %5, 1000
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load ptr, ptr %step.addr, align 8
  %8 = load i32, ptr %7, align 4
  %call = call i32 @fail_at_step(ptr %6, i32 7, i32 %8, ptr @.str.117, ptr @.str.118)
  store i32 %call, ptr %retval, align 4
  br label %return

if.end:
  store i32 0, ptr %arg, align 4
  br label %for.cond

for.cond:
  %9 = load i32, ptr %arg, align 4
  %10 = load ptr, ptr %net.addr, align 8
  %11 = load ptr, ptr %step.addr, align 8
  %12 = load i32, ptr %11, align 4
  %call1 = call i32 @step_word(ptr %10, i32 %12, i32 3)
  %cmp2 = icmp ult i32 %9, %call1
  br i1 %cmp2, label %for.body, label %for.end

for.body:
  %13 = load ptr, ptr %net.addr, align 8
  %14 = load ptr, ptr %step.addr, align 8
  %15 = load i32, ptr %14, align 4
  %16 = load i32, ptr %arg, align 4
  %call3 = call i32 @step_arg(ptr %13, i32 %15, i32 %16)
  store i32 %call3, ptr %tensor, align 4
  %17 = load ptr, ptr %at, align 8
  %18 = load ptr, ptr %net.addr, align 8
  %19 = load i32, ptr %tensor, align 4
  %call4 = call ptr @tensor_data(ptr %18, i32 %19)
  %20 = load ptr, ptr %net.addr, align 8
  %21 = load i32, ptr %tensor, align 4
  %call5 = call i64 @tensor_bytes(ptr %20, i32 %21)
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %17, ptr align 1 %call4, i64 %call5, i1 false)
  %22 = load ptr, ptr %net.addr, align 8
  %23 = load i32, ptr %tensor, align 4
  %call6 = call i64 @tensor_bytes(ptr %22, i32 %23)
  %24 = load ptr, ptr %at, align 8
  %add.ptr7 = getelementptr inbounds i8, ptr %24, i64 %call6
  store ptr %add.ptr7, ptr %at, align 8
  br label %for.inc

for.inc:
  %25 = load i32, ptr %arg, align 4
  %inc = add i32 %25, 1
  store i32 %inc, ptr %arg, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %n, align 4
  br label %for.cond8

for.cond8:
  %26 = load i32, ptr %n, align 4
  %cmp9 = icmp slt i32 %26, 4
  br i1 %cmp9, label %for.body10, label %for.end13

for.body10:
  %27 = load ptr, ptr %step.addr, align 8
  %28 = load i32, ptr %27, align 4
  %29 = load i32, ptr %n, align 4
  %mul = mul nsw i32 8, %29
  %shr = lshr i32 %28, %mul
  %conv = trunc i32 %shr to i8
  %30 = load ptr, ptr %at, align 8
  %incdec.ptr = getelementptr inbounds i8, ptr %30, i32 1
  store ptr %incdec.ptr, ptr %at, align 8
  store i8 %conv, ptr %30, align 1
  br label %for.inc11

for.inc11:
  %31 = load i32, ptr %n, align 4
  %inc12 = add nsw i32 %31, 1
  store i32 %inc12, ptr %n, align 4
  br label %for.cond8

for.end13:
  %32 = load ptr, ptr %at, align 8
  %33 = load ptr, ptr %net.addr, align 8
  %frames14 = getelementptr inbounds %struct.vdla, ptr %33, i32 0, i32 15
  %34 = load ptr, ptr %frames14, align 8
  %sub.ptr.lhs.cast = ptrtoint ptr %32 to i64
  %sub.ptr.rhs.cast = ptrtoint ptr %34 to i64
  %sub.ptr.sub = sub i64 %sub.ptr.lhs.cast, %sub.ptr.rhs.cast
  %35 = load ptr, ptr %net.addr, align 8
  %frames_used15 = getelementptr inbounds %struct.vdla, ptr %35, i32 0, i32 16
  store i64 %sub.ptr.sub, ptr %frames_used15, align 8
  %36 = load ptr, ptr %net.addr, align 8
  %calls16 = getelementptr inbounds %struct.vdla, ptr %36, i32 0, i32 17
  %37 = load i32, ptr %calls16, align 8
  %add = add i32 %37, 1
  store i32 %add, ptr %calls16, align 8
  %38 = load ptr, ptr %net.addr, align 8
  %39 = load ptr, ptr %step.addr, align 8
  %40 = load i32, ptr %39, align 4
  %call17 = call i32 @step_x(ptr %38, i32 %40, i32 0)
  %41 = load ptr, ptr %step.addr, align 8
  store i32 %call17, ptr %41, align 4
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %42 = load i32, ptr %retval, align 4
  ret i32 %42
}

define internal i32 @come_back(ptr %net) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %at = alloca ptr, align 8
  %step = alloca i32, align 4
  %arg = alloca i32, align 4
  %tensor = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %calls = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 17
  %1 = load i32, ptr %calls, align 8
  %cmp = icmp eq i32 %1, 0
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %2 = load ptr, ptr %net.addr, align 8
  %lists = getelementptr inbounds %struct.vdla, ptr %2, i32 0, i32 2
  %arrayidx = getelementptr inbounds [10 x %struct.list], ptr %lists, i64 0, i64 4
  %count = getelementptr inbounds %struct.list, ptr %arrayidx, i32 0, i32 1
  %3 = load i32, ptr %count, align 8
  store i32 %3, ptr %retval, align 4
  br label %return

if.end:
  %4 = load ptr, ptr %net.addr, align 8
  %frames = getelementptr inbounds %struct.vdla, ptr %4, i32 0, i32 15
  %5 = load ptr, ptr %frames, align 8
  %6 = load ptr, ptr %net.addr, align 8
  %frames_used = getelementptr inbounds %struct.vdla, ptr %6, i32 0, i32 16
  %7 = load i64, ptr %frames_used, align 8
  %add.ptr = getelementptr inbounds i8, ptr %5, i64 %7
  %add.ptr1 = getelementptr inbounds i8, ptr %add.ptr, i64 -4
  store ptr %add.ptr1, ptr %at, align 8
  %8 = load ptr, ptr %at, align 8
  %call = call i32 @word_at(ptr %8)
  store i32 %call, ptr %step, align 4
  %9 = load ptr, ptr %net.addr, align 8
  %10 = load i32, ptr %step, align 4
  %call2 = call i32 @step_word(ptr %9, i32 %10, i32 3)
  store i32 %call2, ptr %arg, align 4
  br label %for.cond

for.cond:
  %11 = load i32, ptr %arg, align 4
  %dec = add i32 %11, -1
  store i32 %dec, ptr %arg, align 4
  %cmp3 = icmp ugt i32 %11, 0
  br i1 %cmp3, label %for.body, label %for.end

for.body:
  %12 = load ptr, ptr %net.addr, align 8
  %13 = load i32, ptr %step, align 4
  %14 = load i32, ptr %arg, align 4
  %call4 = call i32 @step_arg(ptr %12, i32 %13, i32 %14)
  store i32 %call4, ptr %tensor, align 4
  %15 = load ptr, ptr %net.addr, align 8
  %16 = load i32, ptr %tensor, align 4
  %call5 = call i64 @tensor_bytes(ptr %15, i32 %16)
  %17 = load ptr, ptr %at, align 8
  %idx.neg = sub i64 0, %call5
  %add.ptr6 = getelementptr inbounds i8, ptr %17, i64 %idx.neg
  store ptr %add.ptr6, ptr %at, align 8
  %18 = load ptr, ptr %net.addr, align 8
  %19 = load i32, ptr %tensor, align 4
  %call7 = call ptr @tensor_data(ptr %18, i32 %19)
  %20 = load ptr, ptr %at, align 8
  %21 = load ptr, ptr %net.addr, align 8
  %22 = load i32, ptr %tensor, align 4
  %call8 = call i64 @tensor_bytes(ptr %21, i32 %22)
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %call7, ptr align 1 %20, i64 %call8, i1 false)
  br label %for.cond

for.end:
  %23 = load ptr, ptr %at, align 8
  %24 = load ptr, ptr %net.addr, align 8
  %frames9 = getelementptr inbounds %struct.vdla, ptr %24, i32 0, i32 15
  %25 = load ptr, ptr %frames9, align 8
  %sub.ptr.lhs.cast = ptrtoint ptr %23 to i64
  %sub.ptr.rhs.cast = ptrtoint ptr %25 to i64
  %sub.ptr.sub = sub i64 %sub.ptr.lhs.cast, %sub.ptr.rhs.cast
  %26 = load ptr, ptr %net.addr, align 8
  %frames_used10 = getelementptr inbounds %struct.vdla, ptr %26, i32 0, i32 16
  store i64 %sub.ptr.sub, ptr %frames_used10, align 8
  %27 = load ptr, ptr %net.addr, align 8
  %calls11 = getelementptr inbounds %struct.vdla, ptr %27, i32 0, i32 17
  %28 = load i32, ptr %calls11, align 8
  %sub = sub i32 %28, 1
  store i32 %sub, ptr %calls11, align 8
  %29 = load i32, ptr %step, align 4
  %add = add i32 %29, 1
  store i32 %add, ptr %retval, align 4
  br label %return

return:
  %30 = load i32, ptr %retval, align 4
  ret i32 %30
}

define internal void @call_function(ptr %net, i32 %step) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %args = alloca i32, align 4
  %arg = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_word(ptr %0, i32 %1, i32 3)
  store i32 %call, ptr %args, align 4
  store i32 0, ptr %arg, align 4
  br label %for.cond

for.cond:
  %2 = load i32, ptr %arg, align 4
  %3 = load i32, ptr %args, align 4
  %cmp = icmp ult i32 %2, %3
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load ptr, ptr %net.addr, align 8
  %6 = load i32, ptr %step.addr, align 4
  %7 = load i32, ptr %arg, align 4
  %call1 = call i32 @step_arg(ptr %5, i32 %6, i32 %7)
  %call2 = call ptr @tensor_data(ptr %4, i32 %call1)
  %8 = load ptr, ptr %net.addr, align 8
  %buffers = getelementptr inbounds %struct.vdla, ptr %8, i32 0, i32 14
  %9 = load ptr, ptr %buffers, align 8
  %10 = load i32, ptr %arg, align 4
  %idxprom = zext i32 %10 to i64
  %arrayidx = getelementptr inbounds ptr, ptr %9, i64 %idxprom
  store ptr %call2, ptr %arrayidx, align 8
  br label %for.inc

for.inc:
  %11 = load i32, ptr %arg, align 4
  %inc = add i32 %11, 1
  store i32 %inc, ptr %arg, align 4
  br label %for.cond

for.end:
  %12 = load ptr, ptr %net.addr, align 8
  %pool = getelementptr inbounds %struct.vdla, ptr %12, i32 0, i32 24
  %13 = load ptr, ptr %pool, align 8
  %14 = load ptr, ptr %net.addr, align 8
  %buffers3 = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 14
  %15 = load ptr, ptr %buffers3, align 8
  %16 = load i32, ptr %args, align 4
  %idxprom4 = zext i32 %16 to i64
  %arrayidx5 = getelementptr inbounds ptr, ptr %15, i64 %idxprom4
  store ptr %13, ptr %arrayidx5, align 8
  %17 = load ptr, ptr %net.addr, align 8
  %code = getelementptr inbounds %struct.vdla, ptr %17, i32 0, i32 8
  %18 = load ptr, ptr %code, align 8
  %functions = getelementptr inbounds %struct.vdla_code, ptr %18, i32 0, i32 0
  %19 = load ptr, ptr %functions, align 8
  %20 = load ptr, ptr %net.addr, align 8
  %21 = load i32, ptr %step.addr, align 4
  %call6 = call i32 @step_x(ptr %20, i32 %21, i32 0)
  %idxprom7 = zext i32 %call6 to i64
  %arrayidx8 = getelementptr inbounds %struct.vdla_function, ptr %19, i64 %idxprom7
  %call9 = getelementptr inbounds %struct.vdla_function, ptr %arrayidx8, i32 0, i32 1
  %22 = load ptr, ptr %call9, align 8
  %23 = load ptr, ptr %net.addr, align 8
  %buffers10 = getelementptr inbounds %struct.vdla, ptr %23, i32 0, i32 14
  %24 = load ptr, ptr %buffers10, align 8
  call void %22(ptr %24)
  ret void
}

define internal i32 @copy(ptr %net, i32 %step) nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %step.addr = alloca i32, align 4
  %way = alloca i32, align 4
  %source = alloca i32, align 4
  %target = alloca i32, align 4
  %from = alloca ptr, align 8
  %to = alloca ptr, align 8
  %bytes = alloca i64, align 8
  %turn = alloca i32, align 4
  %whole = alloca i32, align 4
  %count = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %step, ptr %step.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %step.addr, align 4
  %call = call i32 @step_x(ptr %0, i32 %1, i32 0)
  store i32 %call, ptr %way, align 4
  %2 = load ptr, ptr %net.addr, align 8
  %3 = load i32, ptr %step.addr, align 4
  %call1 = call i32 @step_arg(ptr %2, i32 %3, i32 0)
  store i32 %call1, ptr %source, align 4
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %step.addr, align 4
  %call2 = call i32 @step_arg(ptr %4, i32 %5, i32 1)
  store i32 %call2, ptr %target, align 4
  %6 = load ptr, ptr %net.addr, align 8
  %7 = load i32, ptr %source, align 4
  %call3 = call ptr @tensor_data(ptr %6, i32 %7)
  store ptr %call3, ptr %from, align 8
  %8 = load ptr, ptr %net.addr, align 8
  %9 = load i32, ptr %target, align 4
  %call4 = call ptr @tensor_data(ptr %8, i32 %9)
  store ptr %call4, ptr %to, align 8
  %10 = load i32, ptr %way, align 4
  %cmp = icmp eq i32 %10, 1
  br i1 %cmp, label %cond.true, label %cond.false

cond.true:
  %11 = load ptr, ptr %net.addr, align 8
  %12 = load i32, ptr %target, align 4
  %call5 = call i64 @tensor_bytes(ptr %11, i32 %12)
  br label %cond.end

cond.false:
  %13 = load ptr, ptr %net.addr, align 8
  %14 = load i32, ptr %source, align 4
  %call6 = call i64 @tensor_bytes(ptr %13, i32 %14)
  br label %cond.end

cond.end:
  %cond = phi i64 [ %call5, %cond.true ], [ %call6, %cond.false ]
  store i64 %cond, ptr %bytes, align 8
  %15 = load i32, ptr %way, align 4
  %cmp7 = icmp ne i32 %15, 0
  br i1 %cmp7, label %if.then, label %if.end34

if.then:
  %16 = load ptr, ptr %net.addr, align 8
  %17 = load ptr, ptr %net.addr, align 8
  %18 = load i32, ptr %step.addr, align 4
  %call8 = call i32 @step_x(ptr %17, i32 %18, i32 1)
  %call9 = call i32 @turn_of(ptr %16, i32 %call8)
  store i32 %call9, ptr %turn, align 4
  %19 = load i32, ptr %way, align 4
  %cmp10 = icmp eq i32 %19, 1
  br i1 %cmp10, label %cond.true11, label %cond.false12

cond.true11:
  %20 = load i32, ptr %source, align 4
  br label %cond.end13

cond.false12:
  %21 = load i32, ptr %target, align 4
  br label %cond.end13

cond.end13:
  %cond14 = phi i32 [ %20, %cond.true11 ], [ %21, %cond.false12 ]
  store i32 %cond14, ptr %whole, align 4
  %22 = load ptr, ptr %net.addr, align 8
  %23 = load i32, ptr %whole, align 4
  %call15 = call i32 @tensor_rank(ptr %22, i32 %23)
  %tobool = icmp ne i32 %call15, 0
  br i1 %tobool, label %cond.true16, label %cond.false18

cond.true16:
  %24 = load ptr, ptr %net.addr, align 8
  %25 = load i32, ptr %whole, align 4
  %call17 = call i32 @tensor_size(ptr %24, i32 %25, i32 0)
  br label %cond.end19

cond.false18:
  br label %cond.end19

cond.end19:
  %cond20 = phi i32 [ %call17, %cond.true16 ], [ 1, %cond.false18 ]
  store i32 %cond20, ptr %count, align 4
  %26 = load i32, ptr %turn, align 4
  %27 = load i32, ptr %count, align 4
  %cmp21 = icmp uge i32 %26, %27
  br i1 %cmp21, label %if.then22, label %if.end

if.then22:
  %28 = load ptr, ptr %net.addr, align 8
  %29 = load i32, ptr %step.addr, align 4
  %call23 = call i32 @fail_at_step(ptr %28, i32 7, i32 %29, ptr @.str.119, ptr @.str.118)
  store i32 %call23, ptr %retval, align 4
  br label %return

if.end:
  %30 = load i32, ptr %way, align 4
  %cmp24 = icmp eq i32 %30, 1
  br i1 %cmp24, label %if.then25, label %if.end26

if.then25:
  %31 = load i64, ptr %bytes, align 8
  %32 = load i32, ptr %turn, align 4
  %conv = zext i32 %32 to i64
  %mul = mul i64 %31, %conv
  %33 = load ptr, ptr %from, align 8
  %add.ptr = getelementptr inbounds i8, ptr %33, i64 %mul
  store ptr %add.ptr, ptr %from, align 8
  br label %if.end26

if.end26:
  %34 = load i32, ptr %way, align 4
  %cmp27 = icmp eq i32 %34, 2
  br i1 %cmp27, label %if.then29, label %if.end33

if.then29:
  %35 = load i64, ptr %bytes, align 8
  %36 = load i32, ptr %turn, align 4
  %conv30 = zext i32 %36 to i64
  %mul31 = mul i64 %35, %conv30
  %37 = load ptr, ptr %to, align 8
  %add.ptr32 = getelementptr inbounds i8, ptr %37, i64 %mul31
  store ptr %add.ptr32, ptr %to, align 8
  br label %if.end33

if.end33:
  br label %if.end34

if.end34:
  %38 = load ptr, ptr %to, align 8
  %39 = load ptr, ptr %from, align 8
  %40 = load i64, ptr %bytes, align 8
  call void @llvm.memmove.p0.p0.i64(ptr align 1 %38, ptr align 1 %39, i64 %40, i1 false)
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %41 = load i32, ptr %retval, align 4
  ret i32 %41
}

define internal i32 @turn_of(ptr %net, i32 %tensor) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call ptr @tensor_data(ptr %0, i32 %1)
  %call1 = call i32 @word_at(ptr %call)
  ret i32 %call1
}

define internal void @set_turn(ptr %net, i32 %tensor, i32 %turn) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %tensor.addr = alloca i32, align 4
  %turn.addr = alloca i32, align 4
  %at = alloca ptr, align 8
  %n = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  store i32 %tensor, ptr %tensor.addr, align 4
  store i32 %turn, ptr %turn.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %1 = load i32, ptr %tensor.addr, align 4
  %call = call ptr @tensor_data(ptr %0, i32 %1)
  store ptr %call, ptr %at, align 8
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %2 = load i32, ptr %n, align 4
  %cmp = icmp slt i32 %2, 4
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %3 = load i32, ptr %turn.addr, align 4
  %4 = load i32, ptr %n, align 4
  %mul = mul nsw i32 8, %4
  %shr = lshr i32 %3, %mul
  %conv = trunc i32 %shr to i8
  %5 = load ptr, ptr %at, align 8
  %6 = load i32, ptr %n, align 4
  %idxprom = sext i32 %6 to i64
  %arrayidx = getelementptr inbounds i8, ptr %5, i64 %idxprom
  store i8 %conv, ptr %arrayidx, align 1
  br label %for.inc

for.inc:
  %7 = load i32, ptr %n, align 4
  %inc = add nsw i32 %7, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  ret void
}

declare void @llvm.memmove.p0.p0.i64(ptr writeonly captures(none), ptr readonly captures(none), i64, i1 immarg)
