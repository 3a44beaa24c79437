; From threads.c by python -m vdla.runtime.c.generate
; ziglang 0.17.1, SHA-256 62e195e6afeca32ede3f67a0a0c4e7e5bf55ec66fd11bef1c001d41526f7854b

%struct.vdla = type { [224 x i8], ptr, [10 x %struct.list], ptr, i32, i32, i32, i32, ptr, ptr, ptr, ptr, i32, i32, ptr, ptr, i32, i32, i32, i32, i32, i32, i32, i32, ptr, i32, [64 x i32], [384 x i8] }
%struct.list = type { ptr, i32 }
%struct.vdla_code = type { ptr, i32, ptr, ptr, ptr, ptr }
%struct.mask = type { [32 x i32] }

@.str = private unnamed_addr constant [8 x i8] c"threads\00"
@.str.1 = private unnamed_addr constant [22 x i8] c"1 to 64, started once\00"

define i32 @vdla_start(ptr %net, i32 %threads) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 4
  %threads.addr = alloca i32, align 4
  %memory = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 4
  store i32 %threads, ptr %threads.addr, align 4
  %0 = load ptr, ptr %net.addr, align 4
  %pool = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 24
  %1 = load ptr, ptr %pool, align 4
  %tobool = icmp ne ptr %1, null
  br i1 %tobool, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %2 = load i32, ptr %threads.addr, align 4
  %cmp = icmp ult i32 %2, 1
  br i1 %cmp, label %if.then, label %lor.lhs.false1

lor.lhs.false1:
  %3 = load i32, ptr %threads.addr, align 4
  %cmp2 = icmp ugt i32 %3, 64
  br i1 %cmp2, label %if.then, label %if.end

if.then:
  %4 = load ptr, ptr %net.addr, align 4
  %5 = load i32, ptr %threads.addr, align 4
  %call = call i32 @fail(ptr %4, i32 6, ptr @.str, ptr @.str.1, i32 %5)
  store i32 %call, ptr %retval, align 4
  br label %return

if.end:
  %6 = load i32, ptr %threads.addr, align 4
  %cmp3 = icmp eq i32 %6, 1
  br i1 %cmp3, label %if.then9, label %lor.lhs.false4

lor.lhs.false4:
  %7 = load ptr, ptr %net.addr, align 4
  %code = getelementptr inbounds %struct.vdla, ptr %7, i32 0, i32 8
  %8 = load ptr, ptr %code, align 4
  %cmp5 = icmp eq ptr %8, null
  br i1 %cmp5, label %if.then9, label %lor.lhs.false6

lor.lhs.false6:
  %9 = load ptr, ptr %net.addr, align 4
  %code7 = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 8
  %10 = load ptr, ptr %code7, align 4
  %begin = getelementptr inbounds %struct.vdla_code, ptr %10, i32 0, i32 3
  %11 = load ptr, ptr %begin, align 4
  %cmp8 = icmp eq ptr %11, null
  br i1 %cmp8, label %if.then9, label %if.end10

if.then9:
  store i32 0, ptr %retval, align 4
  br label %return

if.end10:
  %12 = load ptr, ptr %net.addr, align 4
  %pool_memory = getelementptr inbounds %struct.vdla, ptr %12, i32 0, i32 27
  %arraydecay = getelementptr inbounds [384 x i8], ptr %pool_memory, i32 0, i32 0
  %13 = ptrtoint ptr %arraydecay to i32
  store i32 %13, ptr %memory, align 4
  %14 = load ptr, ptr %net.addr, align 4
  %pool_memory11 = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 27
  %arraydecay12 = getelementptr inbounds [384 x i8], ptr %pool_memory11, i32 0, i32 0
  %15 = load i32, ptr %memory, align 4
  %rem = urem i32 %15, 64
  %sub = sub i32 64, %rem
  %rem13 = urem i32 %sub, 64
  %add.ptr = getelementptr inbounds i8, ptr %arraydecay12, i32 %rem13
  %16 = load ptr, ptr %net.addr, align 4
  %pool14 = getelementptr inbounds %struct.vdla, ptr %16, i32 0, i32 24
  store ptr %add.ptr, ptr %pool14, align 4
  %17 = load ptr, ptr %net.addr, align 4
  %code15 = getelementptr inbounds %struct.vdla, ptr %17, i32 0, i32 8
  %18 = load ptr, ptr %code15, align 4
  %begin16 = getelementptr inbounds %struct.vdla_code, ptr %18, i32 0, i32 3
  %19 = load ptr, ptr %begin16, align 4
  %20 = load ptr, ptr %net.addr, align 4
  %pool17 = getelementptr inbounds %struct.vdla, ptr %20, i32 0, i32 24
  %21 = load ptr, ptr %pool17, align 4
  call void %19(ptr %21)
  br label %while.cond

while.cond:
  %22 = load ptr, ptr %net.addr, align 4
  %threads18 = getelementptr inbounds %struct.vdla, ptr %22, i32 0, i32 25
  %23 = load i32, ptr %threads18, align 4
  %24 = load i32, ptr %threads.addr, align 4
  %sub19 = sub i32 %24, 1
  %cmp20 = icmp ult i32 %23, %sub19
  br i1 %cmp20, label %while.body, label %while.end

while.body:
  %25 = load ptr, ptr %net.addr, align 4
  %thread_ids = getelementptr inbounds %struct.vdla, ptr %25, i32 0, i32 26
  %26 = load ptr, ptr %net.addr, align 4
  %threads21 = getelementptr inbounds %struct.vdla, ptr %26, i32 0, i32 25
  %27 = load i32, ptr %threads21, align 4
  %arrayidx = getelementptr inbounds [64 x i32], ptr %thread_ids, i32 0, i32 %27
  %28 = load ptr, ptr %net.addr, align 4
  %call22 = call i32 @pthread_create(ptr %arrayidx, ptr null, ptr @work, ptr %28)
  %tobool23 = icmp ne i32 %call22, 0
  br i1 %tobool23, label %if.then24, label %if.end25

if.then24:
  br label %while.end

if.end25:
  %29 = load ptr, ptr %net.addr, align 4
  %threads26 = getelementptr inbounds %struct.vdla, ptr %29, i32 0, i32 25
  %30 = load i32, ptr %threads26, align 4
  %add = add i32 %30, 1
  store i32 %add, ptr %threads26, align 4
  br label %while.cond

while.end:
  %31 = load ptr, ptr %net.addr, align 4
  call void @pin(ptr %31)
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %32 = load i32, ptr %retval, align 4
  ret i32 %32
}

declare i32 @fail(ptr, i32, ptr, ptr, i32)

declare i32 @pthread_create(ptr, ptr, ptr, ptr)

define internal ptr @work(ptr %context) nounwind {
entry:
  %context.addr = alloca ptr, align 4
  %net = alloca ptr, align 4
  store ptr %context, ptr %context.addr, align 4
  %0 = load ptr, ptr %context.addr, align 4
  store ptr %0, ptr %net, align 4
  %1 = load ptr, ptr %net, align 4
  %code = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 8
  %2 = load ptr, ptr %code, align 4
  %work = getelementptr inbounds %struct.vdla_code, ptr %2, i32 0, i32 4
  %3 = load ptr, ptr %work, align 4
  %4 = load ptr, ptr %net, align 4
  %pool = getelementptr inbounds %struct.vdla, ptr %4, i32 0, i32 24
  %5 = load ptr, ptr %pool, align 4
  call void %3(ptr %5)
  ret ptr null
}

define internal void @pin(ptr %net) nounwind {
entry:
  %net.addr = alloca ptr, align 4
  %mask = alloca %struct.mask, align 16
  %cpu = alloca i32, align 4
  %others = alloca i32, align 4
  %n = alloca i32, align 4
  %n5 = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 4
  %call = call i32 @sched_getcpu()
  store i32 %call, ptr %cpu, align 4
  %0 = load i32, ptr %cpu, align 4
  %cmp = icmp slt i32 %0, 0
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %call1 = call i32 @sched_getaffinity(i32 0, i32 128, ptr %mask)
  %tobool = icmp ne i32 %call1, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  br label %for.end14

if.end:
  %1 = load i32, ptr %cpu, align 4
  %rem = urem i32 %1, 32
  %shl = shl i32 1, %rem
  %not = xor i32 %shl, -1
  %words = getelementptr inbounds %struct.mask, ptr %mask, i32 0, i32 0
  %2 = load i32, ptr %cpu, align 4
  %div = udiv i32 %2, 32
  %arrayidx = getelementptr inbounds [32 x i32], ptr %words, i32 0, i32 %div
  %3 = load i32, ptr %arrayidx, align 4
  %and = and i32 %3, %not
  store i32 %and, ptr %arrayidx, align 4
  store i32 0, ptr %others, align 4
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %4 = load i32, ptr %n, align 4
  %cmp2 = icmp slt i32 %4, 32
  br i1 %cmp2, label %for.body, label %for.end

for.body:
  %words3 = getelementptr inbounds %struct.mask, ptr %mask, i32 0, i32 0
  %5 = load i32, ptr %n, align 4
  %arrayidx4 = getelementptr inbounds [32 x i32], ptr %words3, i32 0, i32 %5
  %6 = load i32, ptr %arrayidx4, align 4
  %7 = load i32, ptr %others, align 4
  %or = or i32 %7, %6
  store i32 %or, ptr %others, align 4
  br label %for.inc

for.inc:
  %8 = load i32, ptr %n, align 4
  %inc = add nsw i32 %8, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %n5, align 4
  br label %for.cond6

for.cond6:
  %9 = load i32, ptr %others, align 4
  %tobool7 = icmp ne i32 %9, 0
  br i1 %tobool7, label %land.rhs, label %land.end

land.rhs:
  %10 = load i32, ptr %n5, align 4
  %11 = load ptr, ptr %net.addr, align 4
  %threads = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 25
  %12 = load i32, ptr %threads, align 4
  %cmp8 = icmp ult i32 %10, %12
  br label %land.end

land.end:
  %13 = phi i1 [ false, %for.cond6 ], [ %cmp8, %land.rhs ]
  br i1 %13, label %for.body9, label %for.end14

for.body9:
  %14 = load ptr, ptr %net.addr, align 4
  %thread_ids = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 26
  %15 = load i32, ptr %n5, align 4
  %arrayidx10 = getelementptr inbounds [64 x i32], ptr %thread_ids, i32 0, i32 %15
  %16 = load i32, ptr %arrayidx10, align 4
  %call11 = call i32 @pthread_setaffinity_np(i32 %16, i32 128, ptr %mask)
  br label %for.inc12

for.inc12:
  %17 = load i32, ptr %n5, align 4
  %inc13 = add i32 %17, 1
  store i32 %inc13, ptr %n5, align 4
  br label %for.cond6

for.end14:
  ret void
}

define void @vdla_close(ptr %net) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 4
  %n = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 4
  %0 = load ptr, ptr %net.addr, align 4
  %cmp = icmp eq ptr %0, null
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %1 = load ptr, ptr %net.addr, align 4
  %pool = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 24
  %2 = load ptr, ptr %pool, align 4
  %cmp1 = icmp eq ptr %2, null
  br i1 %cmp1, label %if.then, label %if.end

if.then:
  br label %return

if.end:
  %3 = load ptr, ptr %net.addr, align 4
  %code = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 8
  %4 = load ptr, ptr %code, align 4
  %set = getelementptr inbounds %struct.vdla_code, ptr %4, i32 0, i32 5
  %5 = load ptr, ptr %set, align 4
  %6 = load ptr, ptr %net.addr, align 4
  %pool2 = getelementptr inbounds %struct.vdla, ptr %6, i32 0, i32 24
  %7 = load ptr, ptr %pool2, align 4
  call void %5(ptr %7, i64 2)
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %8 = load i32, ptr %n, align 4
  %9 = load ptr, ptr %net.addr, align 4
  %threads = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 25
  %10 = load i32, ptr %threads, align 4
  %cmp3 = icmp ult i32 %8, %10
  br i1 %cmp3, label %for.body, label %for.end

for.body:
  %11 = load ptr, ptr %net.addr, align 4
  %thread_ids = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 26
  %12 = load i32, ptr %n, align 4
  %arrayidx = getelementptr inbounds [64 x i32], ptr %thread_ids, i32 0, i32 %12
  %13 = load i32, ptr %arrayidx, align 4
  %call = call i32 @pthread_join(i32 %13, ptr null)
  br label %for.inc

for.inc:
  %14 = load i32, ptr %n, align 4
  %inc = add i32 %14, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  %15 = load ptr, ptr %net.addr, align 4
  %threads4 = getelementptr inbounds %struct.vdla, ptr %15, i32 0, i32 25
  store i32 0, ptr %threads4, align 4
  %16 = load ptr, ptr %net.addr, align 4
  %pool5 = getelementptr inbounds %struct.vdla, ptr %16, i32 0, i32 24
  store ptr null, ptr %pool5, align 4
  br label %return

return:
  ret void
}

declare i32 @pthread_join(i32, ptr)

declare i32 @sched_getcpu()

declare i32 @sched_getaffinity(i32, i32, ptr)

declare i32 @pthread_setaffinity_np(i32, i32, ptr)
