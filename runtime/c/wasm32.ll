; From wasm.c by python -m vdla.runtime.c.generate
; ziglang 0.17.1, SHA-256 bee9bf82e0667750114941b17eba53aa32d85e81752e1221213766c0134002ef

%struct.block = type { ptr, i32 }

@end = internal global i32 0, align 4
@__heap_base = external global i8, align 1
@last = internal global ptr null, align 4

define ptr @malloc(i32 %bytes) noinline nounwind {
entry:
  %retval = alloca ptr, align 4
  %bytes.addr = alloca i32, align 4
  %begin = alloca i32, align 4
  %has = alloca i32, align 4
  %needs = alloca i32, align 4
  %block = alloca ptr, align 4
  store i32 %bytes, ptr %bytes.addr, align 4
  %0 = load i32, ptr @end, align 4
  %tobool = icmp ne i32 %0, 0
  br i1 %tobool, label %cond.true, label %cond.false

cond.true:
  %1 = load i32, ptr @end, align 4
  br label %cond.end

cond.false:
  br label %cond.end

cond.end:
  %cond = phi i32 [ %1, %cond.true ], [ ptrtoint (ptr @__heap_base to i32), %cond.false ]
  store i32 %cond, ptr %begin, align 4
  %2 = load i32, ptr %begin, align 4
  %add = add i32 %2, 8
  %add1 = add i32 %add, 64
  %sub = sub i32 %add1, 1
  %div = udiv i32 %sub, 64
  %mul = mul i32 %div, 64
  store i32 %mul, ptr %begin, align 4
  %3 = load i32, ptr %bytes.addr, align 4
  %4 = load i32, ptr %begin, align 4
  %sub2 = sub i32 -1, %4
  %cmp = icmp ugt i32 %3, %sub2
  br i1 %cmp, label %if.then, label %if.end

if.then:
  store ptr null, ptr %retval, align 4
  br label %return

if.end:
  %5 = call i32 @llvm.wasm.memory.size.i32(i32 0)
  %mul3 = mul i32 %5, 65536
  store i32 %mul3, ptr %has, align 4
  %6 = load i32, ptr %begin, align 4
  %7 = load i32, ptr %bytes.addr, align 4
  %add4 = add i32 %6, %7
  store i32 %add4, ptr %needs, align 4
  %8 = load i32, ptr %needs, align 4
  %9 = load i32, ptr %has, align 4
  %cmp5 = icmp ugt i32 %8, %9
  br i1 %cmp5, label %land.lhs.true, label %if.end12

land.lhs.true:
  %10 = load i32, ptr %needs, align 4
  %11 = load i32, ptr %has, align 4
  %sub6 = sub i32 %10, %11
  %add7 = add i32 %sub6, 65536
  %sub8 = sub i32 %add7, 1
  %div9 = udiv i32 %sub8, 65536
  %12 = call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %div9)
  %cmp10 = icmp eq i32 %12, -1
  br i1 %cmp10, label %if.then11, label %if.end12

if.then11:
  store ptr null, ptr %retval, align 4
  br label %return

if.end12:
  %13 = load i32, ptr %begin, align 4
  %14 = inttoptr i32 %13 to ptr
  %add.ptr = getelementptr inbounds %struct.block, ptr %14, i32 -1
  store ptr %add.ptr, ptr %block, align 4
  %15 = load ptr, ptr @last, align 4
  %16 = load ptr, ptr %block, align 4
  %before = getelementptr inbounds %struct.block, ptr %16, i32 0, i32 0
  store ptr %15, ptr %before, align 4
  %17 = load ptr, ptr %block, align 4
  %is_free = getelementptr inbounds %struct.block, ptr %17, i32 0, i32 1
  store i32 0, ptr %is_free, align 4
  %18 = load ptr, ptr %block, align 4
  store ptr %18, ptr @last, align 4
  %19 = load i32, ptr %needs, align 4
  store i32 %19, ptr @end, align 4
  %20 = load i32, ptr %begin, align 4
  %21 = inttoptr i32 %20 to ptr
  store ptr %21, ptr %retval, align 4
  br label %return

return:
  %22 = load ptr, ptr %retval, align 4
  ret ptr %22
}

declare i32 @llvm.wasm.memory.size.i32(i32)

declare i32 @llvm.wasm.memory.grow.i32(i32, i32)

define void @free(ptr %memory) noinline nounwind {
entry:
  %memory.addr = alloca ptr, align 4
  store ptr %memory, ptr %memory.addr, align 4
  %0 = load ptr, ptr %memory.addr, align 4
  %cmp = icmp eq ptr %0, null
  br i1 %cmp, label %if.then, label %if.end

if.then:
  br label %while.end

if.end:
  %1 = load ptr, ptr %memory.addr, align 4
  %add.ptr = getelementptr inbounds %struct.block, ptr %1, i32 -1
  %is_free = getelementptr inbounds %struct.block, ptr %add.ptr, i32 0, i32 1
  store i32 1, ptr %is_free, align 4
  br label %while.cond

while.cond:
  %2 = load ptr, ptr @last, align 4
  %tobool = icmp ne ptr %2, null
  br i1 %tobool, label %land.rhs, label %land.end

land.rhs:
  %3 = load ptr, ptr @last, align 4
  %is_free1 = getelementptr inbounds %struct.block, ptr %3, i32 0, i32 1
  %4 = load i32, ptr %is_free1, align 4
  %tobool2 = icmp ne i32 %4, 0
  br label %land.end

land.end:
  %5 = phi i1 [ false, %while.cond ], [ %tobool2, %land.rhs ]
  br i1 %5, label %while.body, label %while.end

while.body:
  %6 = load ptr, ptr @last, align 4
  %7 = ptrtoint ptr %6 to i32
  store i32 %7, ptr @end, align 4
  %8 = load ptr, ptr @last, align 4
  %before = getelementptr inbounds %struct.block, ptr %8, i32 0, i32 0
  %9 = load ptr, ptr %before, align 4
  store ptr %9, ptr @last, align 4
  br label %while.cond

while.end:
  ret void
}
