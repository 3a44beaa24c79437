; From pool.c by python -m vdla.runtime.pool.generate
; ziglang 0.17.1, SHA-256 44175b68d5d611c0b9e0e89fb46cb78b4682b3ca9c312152e9c40bdfaa1d2c34

%struct.time = type { i32, i32 }
%struct.call = type { ptr, ptr }
%struct.control = type { i32, i32, i32, i32, ptr, ptr, ptr }
%struct.pool = type { i32, [60 x i8], i32, [60 x i8], i32, ptr, ptr, [52 x i8], [64 x i8], [64 x i8] }

@vdla_clock = external constant i32, align 4

define i32 @vdla_call(ptr %calls, i32 %count, ptr %times) noinline nounwind {
entry:
  %calls.addr = alloca ptr, align 4
  %count.addr = alloca i32, align 4
  %times.addr = alloca ptr, align 4
  %before = alloca %struct.time, align 4
  %mode = alloca i64, align 8
  %n = alloca i32, align 4
  store ptr %calls, ptr %calls.addr, align 4
  store i32 %count, ptr %count.addr, align 4
  store ptr %times, ptr %times.addr, align 4
  %call = call i64 @vdla_flush()
  store i64 %call, ptr %mode, align 8
  %0 = load i32, ptr @vdla_clock, align 4
  %call1 = call i32 @clock_gettime(i32 %0, ptr %before)
  store i32 0, ptr %n, align 4
  br label %while.cond

while.cond:
  %1 = load i32, ptr %n, align 4
  %2 = load i32, ptr %count.addr, align 4
  %cmp = icmp ult i32 %1, %2
  br i1 %cmp, label %while.body, label %while.end

while.body:
  %3 = load ptr, ptr %calls.addr, align 4
  %4 = load i32, ptr %n, align 4
  %arrayidx = getelementptr inbounds %struct.call, ptr %3, i32 %4
  %function = getelementptr inbounds %struct.call, ptr %arrayidx, i32 0, i32 0
  %5 = load ptr, ptr %function, align 4
  %cmp2 = icmp eq ptr %5, null
  br i1 %cmp2, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %calls.addr, align 4
  %7 = load i32, ptr %n, align 4
  %arrayidx3 = getelementptr inbounds %struct.call, ptr %6, i32 %7
  %buffers = getelementptr inbounds %struct.call, ptr %arrayidx3, i32 0, i32 1
  %8 = load ptr, ptr %buffers, align 4
  %9 = load i32, ptr %n, align 4
  %call4 = call i32 @go_on(ptr %8, i32 %9)
  store i32 %call4, ptr %n, align 4
  br label %while.cond

if.end:
  %10 = load ptr, ptr %calls.addr, align 4
  %11 = load i32, ptr %n, align 4
  %arrayidx5 = getelementptr inbounds %struct.call, ptr %10, i32 %11
  %function6 = getelementptr inbounds %struct.call, ptr %arrayidx5, i32 0, i32 0
  %12 = load ptr, ptr %function6, align 4
  %13 = load ptr, ptr %calls.addr, align 4
  %14 = load i32, ptr %n, align 4
  %arrayidx7 = getelementptr inbounds %struct.call, ptr %13, i32 %14
  %buffers8 = getelementptr inbounds %struct.call, ptr %arrayidx7, i32 0, i32 1
  %15 = load ptr, ptr %buffers8, align 4
  call void %12(ptr %15)
  %16 = load ptr, ptr %times.addr, align 4
  %17 = load i32, ptr %n, align 4
  %arrayidx9 = getelementptr inbounds %struct.time, ptr %16, i32 %17
  call void @add_time(ptr %arrayidx9, ptr %before)
  %18 = load i32, ptr %n, align 4
  %add = add i32 %18, 1
  store i32 %add, ptr %n, align 4
  br label %while.cond

while.end:
  %19 = load i64, ptr %mode, align 8
  call void @vdla_restore(i64 %19)
  %20 = load i32, ptr %n, align 4
  ret i32 %20
}

declare i64 @vdla_flush()

declare i32 @clock_gettime(i32, ptr)

define internal i32 @go_on(ptr %control, i32 %n) nounwind {
entry:
  %retval = alloca i32, align 4
  %control.addr = alloca ptr, align 4
  %n.addr = alloca i32, align 4
  %place = alloca i32, align 4
  store ptr %control, ptr %control.addr, align 4
  store i32 %n, ptr %n.addr, align 4
  %0 = load ptr, ptr %control.addr, align 4
  %turn = getelementptr inbounds %struct.control, ptr %0, i32 0, i32 4
  %1 = load ptr, ptr %turn, align 4
  %cmp = icmp eq ptr %1, null
  br i1 %cmp, label %cond.true, label %cond.false

cond.true:
  br label %cond.end

cond.false:
  %2 = load ptr, ptr %control.addr, align 4
  %size = getelementptr inbounds %struct.control, ptr %2, i32 0, i32 3
  %3 = load i32, ptr %size, align 4
  %4 = load ptr, ptr %control.addr, align 4
  %turn1 = getelementptr inbounds %struct.control, ptr %4, i32 0, i32 4
  %5 = load ptr, ptr %turn1, align 4
  %6 = load i32, ptr %5, align 4
  %mul = mul i32 %3, %6
  br label %cond.end

cond.end:
  %cond = phi i32 [ 0, %cond.true ], [ %mul, %cond.false ]
  store i32 %cond, ptr %place, align 4
  %7 = load ptr, ptr %control.addr, align 4
  %kind = getelementptr inbounds %struct.control, ptr %7, i32 0, i32 0
  %8 = load i32, ptr %kind, align 4
  switch i32 %8, label %sw.default [
    i32 0, label %sw.bb
    i32 1, label %sw.bb3
    i32 2, label %sw.bb9
    i32 3, label %sw.bb16
    i32 5, label %sw.bb21
    i32 6, label %sw.bb28
    i32 7, label %sw.bb38
  ]

sw.bb:
  %9 = load ptr, ptr %control.addr, align 4
  %into = getelementptr inbounds %struct.control, ptr %9, i32 0, i32 6
  %10 = load ptr, ptr %into, align 4
  %11 = load ptr, ptr %control.addr, align 4
  %source = getelementptr inbounds %struct.control, ptr %11, i32 0, i32 5
  %12 = load ptr, ptr %source, align 4
  %13 = load ptr, ptr %control.addr, align 4
  %size2 = getelementptr inbounds %struct.control, ptr %13, i32 0, i32 3
  %14 = load i32, ptr %size2, align 4
  %call = call ptr @memcpy(ptr %10, ptr %12, i32 %14)
  %15 = load i32, ptr %n.addr, align 4
  %add = add i32 %15, 1
  store i32 %add, ptr %retval, align 4
  br label %return

sw.bb3:
  %16 = load ptr, ptr %control.addr, align 4
  %into4 = getelementptr inbounds %struct.control, ptr %16, i32 0, i32 6
  %17 = load ptr, ptr %into4, align 4
  %18 = load ptr, ptr %control.addr, align 4
  %source5 = getelementptr inbounds %struct.control, ptr %18, i32 0, i32 5
  %19 = load ptr, ptr %source5, align 4
  %20 = load i32, ptr %place, align 4
  %add.ptr = getelementptr inbounds i8, ptr %19, i32 %20
  %21 = load ptr, ptr %control.addr, align 4
  %size6 = getelementptr inbounds %struct.control, ptr %21, i32 0, i32 3
  %22 = load i32, ptr %size6, align 4
  %call7 = call ptr @memcpy(ptr %17, ptr %add.ptr, i32 %22)
  %23 = load i32, ptr %n.addr, align 4
  %add8 = add i32 %23, 1
  store i32 %add8, ptr %retval, align 4
  br label %return

sw.bb9:
  %24 = load ptr, ptr %control.addr, align 4
  %into10 = getelementptr inbounds %struct.control, ptr %24, i32 0, i32 6
  %25 = load ptr, ptr %into10, align 4
  %26 = load i32, ptr %place, align 4
  %add.ptr11 = getelementptr inbounds i8, ptr %25, i32 %26
  %27 = load ptr, ptr %control.addr, align 4
  %source12 = getelementptr inbounds %struct.control, ptr %27, i32 0, i32 5
  %28 = load ptr, ptr %source12, align 4
  %29 = load ptr, ptr %control.addr, align 4
  %size13 = getelementptr inbounds %struct.control, ptr %29, i32 0, i32 3
  %30 = load i32, ptr %size13, align 4
  %call14 = call ptr @memcpy(ptr %add.ptr11, ptr %28, i32 %30)
  %31 = load i32, ptr %n.addr, align 4
  %add15 = add i32 %31, 1
  store i32 %add15, ptr %retval, align 4
  br label %return

sw.bb16:
  %32 = load ptr, ptr %control.addr, align 4
  %into17 = getelementptr inbounds %struct.control, ptr %32, i32 0, i32 6
  %33 = load ptr, ptr %into17, align 4
  %34 = load ptr, ptr %control.addr, align 4
  %size18 = getelementptr inbounds %struct.control, ptr %34, i32 0, i32 3
  %35 = load i32, ptr %size18, align 4
  %call19 = call ptr @memset(ptr %33, i32 0, i32 %35)
  %36 = load i32, ptr %n.addr, align 4
  %add20 = add i32 %36, 1
  store i32 %add20, ptr %retval, align 4
  br label %return

sw.bb21:
  %37 = load ptr, ptr %control.addr, align 4
  %source22 = getelementptr inbounds %struct.control, ptr %37, i32 0, i32 5
  %38 = load ptr, ptr %source22, align 4
  %39 = load i8, ptr %38, align 1
  %conv = zext i8 %39 to i32
  %tobool = icmp ne i32 %conv, 0
  br i1 %tobool, label %cond.true23, label %cond.false24

cond.true23:
  %40 = load ptr, ptr %control.addr, align 4
  %to = getelementptr inbounds %struct.control, ptr %40, i32 0, i32 1
  %41 = load i32, ptr %to, align 4
  br label %cond.end26

cond.false24:
  %42 = load i32, ptr %n.addr, align 4
  %add25 = add i32 %42, 1
  br label %cond.end26

cond.end26:
  %cond27 = phi i32 [ %41, %cond.true23 ], [ %add25, %cond.false24 ]
  store i32 %cond27, ptr %retval, align 4
  br label %return

sw.bb28:
  %43 = load ptr, ptr %control.addr, align 4
  %source29 = getelementptr inbounds %struct.control, ptr %43, i32 0, i32 5
  %44 = load ptr, ptr %source29, align 4
  %45 = load i8, ptr %44, align 1
  %conv30 = zext i8 %45 to i32
  %tobool31 = icmp ne i32 %conv30, 0
  br i1 %tobool31, label %cond.true32, label %cond.false34

cond.true32:
  %46 = load i32, ptr %n.addr, align 4
  %add33 = add i32 %46, 1
  br label %cond.end36

cond.false34:
  %47 = load ptr, ptr %control.addr, align 4
  %to35 = getelementptr inbounds %struct.control, ptr %47, i32 0, i32 1
  %48 = load i32, ptr %to35, align 4
  br label %cond.end36

cond.end36:
  %cond37 = phi i32 [ %add33, %cond.true32 ], [ %48, %cond.false34 ]
  store i32 %cond37, ptr %retval, align 4
  br label %return

sw.bb38:
  %49 = load ptr, ptr %control.addr, align 4
  %turn39 = getelementptr inbounds %struct.control, ptr %49, i32 0, i32 4
  %50 = load ptr, ptr %turn39, align 4
  %51 = load i32, ptr %50, align 4
  %inc = add i32 %51, 1
  store i32 %inc, ptr %50, align 4
  %52 = load ptr, ptr %control.addr, align 4
  %size40 = getelementptr inbounds %struct.control, ptr %52, i32 0, i32 3
  %53 = load i32, ptr %size40, align 4
  %cmp41 = icmp ult i32 %inc, %53
  br i1 %cmp41, label %cond.true43, label %cond.false45

cond.true43:
  %54 = load ptr, ptr %control.addr, align 4
  %to44 = getelementptr inbounds %struct.control, ptr %54, i32 0, i32 1
  %55 = load i32, ptr %to44, align 4
  br label %cond.end46

cond.false45:
  %56 = load ptr, ptr %control.addr, align 4
  %end = getelementptr inbounds %struct.control, ptr %56, i32 0, i32 2
  %57 = load i32, ptr %end, align 4
  br label %cond.end46

cond.end46:
  %cond47 = phi i32 [ %55, %cond.true43 ], [ %57, %cond.false45 ]
  store i32 %cond47, ptr %retval, align 4
  br label %return

sw.default:
  %58 = load ptr, ptr %control.addr, align 4
  %to48 = getelementptr inbounds %struct.control, ptr %58, i32 0, i32 1
  %59 = load i32, ptr %to48, align 4
  store i32 %59, ptr %retval, align 4
  br label %return

return:
  %60 = load i32, ptr %retval, align 4
  ret i32 %60
}

define internal void @add_time(ptr %sum, ptr %before) nounwind {
entry:
  %sum.addr = alloca ptr, align 4
  %before.addr = alloca ptr, align 4
  %now = alloca %struct.time, align 4
  store ptr %sum, ptr %sum.addr, align 4
  store ptr %before, ptr %before.addr, align 4
  %0 = load i32, ptr @vdla_clock, align 4
  %call = call i32 @clock_gettime(i32 %0, ptr %now)
  %seconds = getelementptr inbounds %struct.time, ptr %now, i32 0, i32 0
  %1 = load i32, ptr %seconds, align 4
  %2 = load ptr, ptr %before.addr, align 4
  %seconds1 = getelementptr inbounds %struct.time, ptr %2, i32 0, i32 0
  %3 = load i32, ptr %seconds1, align 4
  %sub = sub nsw i32 %1, %3
  %4 = load ptr, ptr %sum.addr, align 4
  %seconds2 = getelementptr inbounds %struct.time, ptr %4, i32 0, i32 0
  %5 = load i32, ptr %seconds2, align 4
  %add = add nsw i32 %5, %sub
  store i32 %add, ptr %seconds2, align 4
  %nanoseconds = getelementptr inbounds %struct.time, ptr %now, i32 0, i32 1
  %6 = load i32, ptr %nanoseconds, align 4
  %7 = load ptr, ptr %before.addr, align 4
  %nanoseconds3 = getelementptr inbounds %struct.time, ptr %7, i32 0, i32 1
  %8 = load i32, ptr %nanoseconds3, align 4
  %sub4 = sub nsw i32 %6, %8
  %9 = load ptr, ptr %sum.addr, align 4
  %nanoseconds5 = getelementptr inbounds %struct.time, ptr %9, i32 0, i32 1
  %10 = load i32, ptr %nanoseconds5, align 4
  %add6 = add nsw i32 %10, %sub4
  store i32 %add6, ptr %nanoseconds5, align 4
  %11 = load ptr, ptr %sum.addr, align 4
  %nanoseconds7 = getelementptr inbounds %struct.time, ptr %11, i32 0, i32 1
  %12 = load i32, ptr %nanoseconds7, align 4
  %cmp = icmp slt i32 %12, 0
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %13 = load ptr, ptr %sum.addr, align 4
  %seconds8 = getelementptr inbounds %struct.time, ptr %13, i32 0, i32 0
  %14 = load i32, ptr %seconds8, align 4
  %sub9 = sub nsw i32 %14, 1
  store i32 %sub9, ptr %seconds8, align 4
  %15 = load ptr, ptr %sum.addr, align 4
  %nanoseconds10 = getelementptr inbounds %struct.time, ptr %15, i32 0, i32 1
  %16 = load i32, ptr %nanoseconds10, align 4
  %add11 = add nsw i32 %16, 1000000000
  store i32 %add11, ptr %nanoseconds10, align 4
  br label %if.end

if.end:
  %17 = load ptr, ptr %sum.addr, align 4
  %nanoseconds12 = getelementptr inbounds %struct.time, ptr %17, i32 0, i32 1
  %18 = load i32, ptr %nanoseconds12, align 4
  %cmp13 = icmp sge i32 %18, 1000000000
  br i1 %cmp13, label %if.then14, label %if.end19

if.then14:
  %19 = load ptr, ptr %sum.addr, align 4
  %seconds15 = getelementptr inbounds %struct.time, ptr %19, i32 0, i32 0
  %20 = load i32, ptr %seconds15, align 4
  %add16 = add nsw i32 %20, 1
  store i32 %add16, ptr %seconds15, align 4
  %21 = load ptr, ptr %sum.addr, align 4
  %nanoseconds17 = getelementptr inbounds %struct.time, ptr %21, i32 0, i32 1
  %22 = load i32, ptr %nanoseconds17, align 4
  %sub18 = sub nsw i32 %22, 1000000000
  store i32 %sub18, ptr %nanoseconds17, align 4
  br label %if.end19

if.end19:
  %23 = load ptr, ptr %before.addr, align 4
  call void @llvm.memcpy.p0.p0.i32(ptr align 4 %23, ptr align 4 %now, i32 8, i1 false)
  ret void
}

declare void @vdla_restore(i64)

define void @vdla_parallel(ptr %pool, ptr %function, ptr %context, i32 %tasks) noinline nounwind {
entry:
  %pool.addr = alloca ptr, align 4
  %function.addr = alloca ptr, align 4
  %context.addr = alloca ptr, align 4
  %tasks.addr = alloca i32, align 4
  %task = alloca i32, align 4
  %.atomictmp = alloca i32, align 4
  %.atomictmp5 = alloca i32, align 4
  %times = alloca i32, align 4
  %atomic-temp = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 4
  store ptr %function, ptr %function.addr, align 4
  store ptr %context, ptr %context.addr, align 4
  store i32 %tasks, ptr %tasks.addr, align 4
  %0 = load ptr, ptr %pool.addr, align 4
  %cmp = icmp eq ptr %0, null
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %1 = load i32, ptr %tasks.addr, align 4
  %cmp1 = icmp eq i32 %1, 1
  br i1 %cmp1, label %if.then, label %if.end

if.then:
  store i32 0, ptr %task, align 4
  br label %for.cond

for.cond:
  %2 = load i32, ptr %task, align 4
  %3 = load i32, ptr %tasks.addr, align 4
  %cmp2 = icmp ult i32 %2, %3
  br i1 %cmp2, label %for.body, label %for.end

for.body:
  %4 = load ptr, ptr %function.addr, align 4
  %5 = load ptr, ptr %context.addr, align 4
  %6 = load i32, ptr %task, align 4
  call void %4(ptr %5, i32 %6)
  br label %for.inc

for.inc:
  %7 = load i32, ptr %task, align 4
  %inc = add i32 %7, 1
  store i32 %inc, ptr %task, align 4
  br label %for.cond

for.end:
  br label %while.end

if.end:
  %8 = load ptr, ptr %pool.addr, align 4
  %done = getelementptr inbounds %struct.pool, ptr %8, i32 0, i32 2
  store i32 0, ptr %.atomictmp, align 4
  %9 = load i32, ptr %.atomictmp, align 4
  store atomic i32 %9, ptr %done monotonic, align 64
  %10 = load ptr, ptr %function.addr, align 4
  %11 = load ptr, ptr %pool.addr, align 4
  %function3 = getelementptr inbounds %struct.pool, ptr %11, i32 0, i32 5
  store ptr %10, ptr %function3, align 4
  %12 = load ptr, ptr %context.addr, align 4
  %13 = load ptr, ptr %pool.addr, align 4
  %context4 = getelementptr inbounds %struct.pool, ptr %13, i32 0, i32 6
  store ptr %12, ptr %context4, align 8
  %14 = load ptr, ptr %pool.addr, align 4
  %claim = getelementptr inbounds %struct.pool, ptr %14, i32 0, i32 0
  %15 = load i32, ptr %tasks.addr, align 4
  %shl = shl i32 %15, 16
  store i32 %shl, ptr %.atomictmp5, align 4
  %16 = load i32, ptr %.atomictmp5, align 4
  store atomic i32 %16, ptr %claim release, align 64
  %17 = load ptr, ptr %pool.addr, align 4
  call void @take(ptr %17)
  store i32 0, ptr %times, align 4
  br label %while.cond

while.cond:
  %18 = load ptr, ptr %pool.addr, align 4
  %done6 = getelementptr inbounds %struct.pool, ptr %18, i32 0, i32 2
  %19 = load atomic i32, ptr %done6 acquire, align 64
  store i32 %19, ptr %atomic-temp, align 4
  %20 = load i32, ptr %atomic-temp, align 4
  %21 = load i32, ptr %tasks.addr, align 4
  %cmp7 = icmp ne i32 %20, %21
  br i1 %cmp7, label %while.body, label %while.end

while.body:
  call void @rest(ptr %times)
  br label %while.cond

while.end:
  ret void
}

define internal void @take(ptr %pool) nounwind {
entry:
  %pool.addr = alloca ptr, align 4
  %claim = alloca i32, align 4
  %atomic-temp = alloca i32, align 4
  %tasks = alloca i32, align 4
  %task = alloca i32, align 4
  %count = alloca i32, align 4
  %.atomictmp = alloca i32, align 4
  %cmpxchg.bool = alloca i8, align 1
  %function = alloca ptr, align 4
  %context = alloca ptr, align 4
  %end = alloca i32, align 4
  %.atomictmp9 = alloca i32, align 4
  %atomic-temp10 = alloca i32, align 4
  %atomic-temp12 = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 4
  %0 = load ptr, ptr %pool.addr, align 4
  %claim1 = getelementptr inbounds %struct.pool, ptr %0, i32 0, i32 0
  %1 = load atomic i32, ptr %claim1 monotonic, align 64
  store i32 %1, ptr %atomic-temp, align 4
  %2 = load i32, ptr %atomic-temp, align 4
  store i32 %2, ptr %claim, align 4
  br label %while.body

while.body:
  %3 = load i32, ptr %claim, align 4
  %shr = lshr i32 %3, 16
  store i32 %shr, ptr %tasks, align 4
  %4 = load i32, ptr %claim, align 4
  %rem = urem i32 %4, 65536
  store i32 %rem, ptr %task, align 4
  %5 = load i32, ptr %task, align 4
  %6 = load i32, ptr %tasks, align 4
  %cmp = icmp eq i32 %5, %6
  br i1 %cmp, label %if.then, label %if.end

if.then:
  ret void

if.end:
  %7 = load i32, ptr %tasks, align 4
  %8 = load i32, ptr %task, align 4
  %sub = sub i32 %7, %8
  %div = udiv i32 %sub, 8
  %or = or i32 %div, 1
  store i32 %or, ptr %count, align 4
  %9 = load ptr, ptr %pool.addr, align 4
  %claim2 = getelementptr inbounds %struct.pool, ptr %9, i32 0, i32 0
  %10 = load i32, ptr %claim, align 4
  %11 = load i32, ptr %count, align 4
  %add = add i32 %10, %11
  store i32 %add, ptr %.atomictmp, align 4
  %12 = load i32, ptr %claim, align 4
  %13 = load i32, ptr %.atomictmp, align 4
  %14 = cmpxchg weak ptr %claim2, i32 %12, i32 %13 acquire monotonic, align 64
  %15 = extractvalue { i32, i1 } %14, 0
  %16 = extractvalue { i32, i1 } %14, 1
  br i1 %16, label %cmpxchg.continue, label %cmpxchg.store_expected

cmpxchg.store_expected:
  store i32 %15, ptr %claim, align 4
  br label %cmpxchg.continue

cmpxchg.continue:
  %storedv = zext i1 %16 to i8
  store i8 %storedv, ptr %cmpxchg.bool, align 1
  %17 = load i8, ptr %cmpxchg.bool, align 1
  %loadedv = trunc i8 %17 to i1
  br i1 %loadedv, label %if.end4, label %if.then3

if.then3:
  br label %while.body

if.end4:
  %18 = load ptr, ptr %pool.addr, align 4
  %function5 = getelementptr inbounds %struct.pool, ptr %18, i32 0, i32 5
  %19 = load ptr, ptr %function5, align 4
  store ptr %19, ptr %function, align 4
  %20 = load ptr, ptr %pool.addr, align 4
  %context6 = getelementptr inbounds %struct.pool, ptr %20, i32 0, i32 6
  %21 = load ptr, ptr %context6, align 8
  store ptr %21, ptr %context, align 4
  %22 = load i32, ptr %task, align 4
  %23 = load i32, ptr %count, align 4
  %add7 = add i32 %22, %23
  store i32 %add7, ptr %end, align 4
  br label %for.cond

for.cond:
  %24 = load i32, ptr %task, align 4
  %25 = load i32, ptr %end, align 4
  %cmp8 = icmp ult i32 %24, %25
  br i1 %cmp8, label %for.body, label %for.end

for.body:
  %26 = load ptr, ptr %function, align 4
  %27 = load ptr, ptr %context, align 4
  %28 = load i32, ptr %task, align 4
  call void %26(ptr %27, i32 %28)
  br label %for.inc

for.inc:
  %29 = load i32, ptr %task, align 4
  %inc = add i32 %29, 1
  store i32 %inc, ptr %task, align 4
  br label %for.cond

for.end:
  %30 = load ptr, ptr %pool.addr, align 4
  %done = getelementptr inbounds %struct.pool, ptr %30, i32 0, i32 2
  %31 = load i32, ptr %count, align 4
  store i32 %31, ptr %.atomictmp9, align 4
  %32 = load i32, ptr %.atomictmp9, align 4
  %33 = atomicrmw add ptr %done, i32 %32 release, align 64
  store i32 %33, ptr %atomic-temp10, align 4
  %34 = load i32, ptr %atomic-temp10, align 4
  %35 = load ptr, ptr %pool.addr, align 4
  %claim11 = getelementptr inbounds %struct.pool, ptr %35, i32 0, i32 0
  %36 = load atomic i32, ptr %claim11 monotonic, align 64
  store i32 %36, ptr %atomic-temp12, align 4
  %37 = load i32, ptr %atomic-temp12, align 4
  store i32 %37, ptr %claim, align 4
  br label %while.body
}

define internal void @rest(ptr %times) nounwind {
entry:
  %times.addr = alloca ptr, align 4
  store ptr %times, ptr %times.addr, align 4
  call void @vdla_pause()
  %0 = load ptr, ptr %times.addr, align 4
  %1 = load i32, ptr %0, align 4
  %inc = add i32 %1, 1
  store i32 %inc, ptr %0, align 4
  %rem = urem i32 %inc, 256
  %cmp = icmp eq i32 %rem, 0
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %call = call i32 @sched_yield()
  br label %if.end

if.end:
  ret void
}

define void @vdla_begin(ptr %pool) noinline nounwind {
entry:
  %pool.addr = alloca ptr, align 4
  store ptr %pool, ptr %pool.addr, align 4
  %0 = load ptr, ptr %pool.addr, align 4
  %mutex = getelementptr inbounds %struct.pool, ptr %0, i32 0, i32 8
  %arraydecay = getelementptr inbounds [64 x i8], ptr %mutex, i32 0, i32 0
  %call = call i32 @pthread_mutex_init(ptr %arraydecay, ptr null)
  %1 = load ptr, ptr %pool.addr, align 4
  %condition = getelementptr inbounds %struct.pool, ptr %1, i32 0, i32 9
  %arraydecay1 = getelementptr inbounds [64 x i8], ptr %condition, i32 0, i32 0
  %call2 = call i32 @pthread_cond_init(ptr %arraydecay1, ptr null)
  %2 = load ptr, ptr %pool.addr, align 4
  %claim = getelementptr inbounds %struct.pool, ptr %2, i32 0, i32 0
  store i32 0, ptr %claim, align 4
  %3 = load ptr, ptr %pool.addr, align 4
  %done = getelementptr inbounds %struct.pool, ptr %3, i32 0, i32 2
  store i32 0, ptr %done, align 4
  %4 = load ptr, ptr %pool.addr, align 4
  %state = getelementptr inbounds %struct.pool, ptr %4, i32 0, i32 4
  store i32 1, ptr %state, align 4
  ret void
}

declare i32 @pthread_mutex_init(ptr, ptr)

declare i32 @pthread_cond_init(ptr, ptr)

define void @vdla_set(ptr %pool, i64 %state) noinline nounwind {
entry:
  %pool.addr = alloca ptr, align 4
  %state.addr = alloca i64, align 8
  %.atomictmp = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 4
  store i64 %state, ptr %state.addr, align 8
  %0 = load ptr, ptr %pool.addr, align 4
  %mutex = getelementptr inbounds %struct.pool, ptr %0, i32 0, i32 8
  %arraydecay = getelementptr inbounds [64 x i8], ptr %mutex, i32 0, i32 0
  %call = call i32 @pthread_mutex_lock(ptr %arraydecay)
  %1 = load ptr, ptr %pool.addr, align 4
  %state1 = getelementptr inbounds %struct.pool, ptr %1, i32 0, i32 4
  %2 = load i64, ptr %state.addr, align 8
  %conv = trunc i64 %2 to i32
  store i32 %conv, ptr %.atomictmp, align 4
  %3 = load i32, ptr %.atomictmp, align 4
  store atomic i32 %3, ptr %state1 monotonic, align 64
  %4 = load ptr, ptr %pool.addr, align 4
  %mutex2 = getelementptr inbounds %struct.pool, ptr %4, i32 0, i32 8
  %arraydecay3 = getelementptr inbounds [64 x i8], ptr %mutex2, i32 0, i32 0
  %call4 = call i32 @pthread_mutex_unlock(ptr %arraydecay3)
  %5 = load i64, ptr %state.addr, align 8
  %cmp = icmp ne i64 %5, 1
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %pool.addr, align 4
  %condition = getelementptr inbounds %struct.pool, ptr %6, i32 0, i32 9
  %arraydecay6 = getelementptr inbounds [64 x i8], ptr %condition, i32 0, i32 0
  %call7 = call i32 @pthread_cond_broadcast(ptr %arraydecay6)
  br label %if.end

if.end:
  ret void
}

declare i32 @pthread_mutex_lock(ptr)

declare i32 @pthread_mutex_unlock(ptr)

declare i32 @pthread_cond_broadcast(ptr)

define void @vdla_work(ptr %pool) noinline nounwind {
entry:
  %pool.addr = alloca ptr, align 4
  %times = alloca i32, align 4
  %before = alloca i64, align 8
  %idle = alloca i32, align 4
  %open = alloca i8, align 1
  %atomic-temp = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 4
  store i32 0, ptr %times, align 4
  %call = call i64 @vdla_flush()
  store i64 %call, ptr %before, align 8
  br label %while.cond

while.cond:
  %0 = load ptr, ptr %pool.addr, align 4
  %call1 = call i32 @sleep_while_closed(ptr %0)
  %cmp = icmp ne i32 %call1, 2
  br i1 %cmp, label %while.body, label %while.end

while.body:
  store i32 0, ptr %idle, align 4
  br label %for.cond

for.cond:
  %1 = load i32, ptr %idle, align 4
  %cmp2 = icmp ule i32 %1, 2048
  br i1 %cmp2, label %for.body, label %for.end

for.body:
  %2 = load ptr, ptr %pool.addr, align 4
  call void @take(ptr %2)
  %3 = load ptr, ptr %pool.addr, align 4
  %state = getelementptr inbounds %struct.pool, ptr %3, i32 0, i32 4
  %4 = load atomic i32, ptr %state monotonic, align 64
  store i32 %4, ptr %atomic-temp, align 4
  %5 = load i32, ptr %atomic-temp, align 4
  %cmp3 = icmp eq i32 %5, 0
  %storedv = zext i1 %cmp3 to i8
  store i8 %storedv, ptr %open, align 1
  %6 = load i8, ptr %open, align 1
  %loadedv = trunc i8 %6 to i1
  br i1 %loadedv, label %cond.true, label %cond.false

cond.true:
  br label %cond.end

cond.false:
  %7 = load i32, ptr %idle, align 4
  %add = add i32 %7, 1
  br label %cond.end

cond.end:
  %cond = phi i32 [ 0, %cond.true ], [ %add, %cond.false ]
  store i32 %cond, ptr %idle, align 4
  br label %for.inc

for.inc:
  call void @rest(ptr %times)
  br label %for.cond

for.end:
  br label %while.cond

while.end:
  %8 = load i64, ptr %before, align 8
  call void @vdla_restore(i64 %8)
  ret void
}

define internal i32 @sleep_while_closed(ptr %pool) nounwind {
entry:
  %pool.addr = alloca ptr, align 4
  %state = alloca i32, align 4
  %atomic-temp = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 4
  %0 = load ptr, ptr %pool.addr, align 4
  %mutex = getelementptr inbounds %struct.pool, ptr %0, i32 0, i32 8
  %arraydecay = getelementptr inbounds [64 x i8], ptr %mutex, i32 0, i32 0
  %call = call i32 @pthread_mutex_lock(ptr %arraydecay)
  br label %while.cond

while.cond:
  %1 = load ptr, ptr %pool.addr, align 4
  %state1 = getelementptr inbounds %struct.pool, ptr %1, i32 0, i32 4
  %2 = load atomic i32, ptr %state1 monotonic, align 64
  store i32 %2, ptr %atomic-temp, align 4
  %3 = load i32, ptr %atomic-temp, align 4
  store i32 %3, ptr %state, align 4
  %cmp = icmp eq i32 %3, 1
  br i1 %cmp, label %while.body, label %while.end

while.body:
  %4 = load ptr, ptr %pool.addr, align 4
  %condition = getelementptr inbounds %struct.pool, ptr %4, i32 0, i32 9
  %arraydecay2 = getelementptr inbounds [64 x i8], ptr %condition, i32 0, i32 0
  %5 = load ptr, ptr %pool.addr, align 4
  %mutex3 = getelementptr inbounds %struct.pool, ptr %5, i32 0, i32 8
  %arraydecay4 = getelementptr inbounds [64 x i8], ptr %mutex3, i32 0, i32 0
  %call5 = call i32 @pthread_cond_wait(ptr %arraydecay2, ptr %arraydecay4)
  br label %while.cond

while.end:
  %6 = load ptr, ptr %pool.addr, align 4
  %mutex6 = getelementptr inbounds %struct.pool, ptr %6, i32 0, i32 8
  %arraydecay7 = getelementptr inbounds [64 x i8], ptr %mutex6, i32 0, i32 0
  %call8 = call i32 @pthread_mutex_unlock(ptr %arraydecay7)
  %7 = load i32, ptr %state, align 4
  ret i32 %7
}

declare ptr @memcpy(ptr, ptr, i32)

declare ptr @memset(ptr, i32, i32)

declare void @llvm.memcpy.p0.p0.i32(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i32, i1 immarg)

declare void @vdla_pause()

declare i32 @sched_yield()

declare i32 @pthread_cond_wait(ptr, ptr)
