; From threads.c by python -m vdla.runtime.c.generate
; ziglang 0.17.1, SHA-256 62e195e6afeca32ede3f67a0a0c4e7e5bf55ec66fd11bef1c001d41526f7854b

%struct.vdla = type { [224 x i8], ptr, [10 x %struct.list], ptr, i64, i64, i32, i32, ptr, ptr, ptr, ptr, i64, i64, ptr, ptr, i64, i32, i32, i32, i64, i32, i32, i32, ptr, i32, [64 x i64], [384 x i8] }
%struct.list = type { ptr, i32 }
%struct.vdla_code = type { ptr, i64, ptr, ptr, ptr, ptr }
%struct.mask = type { [16 x i64] }

@.str = private unnamed_addr constant [8 x i8] c"threads\00"
@.str.1 = private unnamed_addr constant [22 x i8] c"1 to 64, started once\00"

define i32 @vdla_start(ptr %net, i32 %threads) noinline nounwind {
entry:
  %retval = alloca i32, align 4
  %net.addr = alloca ptr, align 8
  %threads.addr = alloca i32, align 4
  %memory = alloca i64, align 8
  store ptr %net, ptr %net.addr, align 8
  store i32 %threads, ptr %threads.addr, align 4
  %0 = load ptr, ptr %net.addr, align 8
  %pool = getelementptr inbounds %struct.vdla, ptr %0, i32 0, i32 24
  %1 = load ptr, ptr %pool, align 8
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
  %4 = load ptr, ptr %net.addr, align 8
  %5 = load i32, ptr %threads.addr, align 4
  %conv = zext i32 %5 to i64
  %call = call i32 @fail(ptr %4, i32 6, ptr @.str, ptr @.str.1, i64 %conv)
  store i32 %call, ptr %retval, align 4
  br label %return

if.end:
  %6 = load i32, ptr %threads.addr, align 4
  %cmp3 = icmp eq i32 %6, 1
  br i1 %cmp3, label %if.then12, label %lor.lhs.false5

lor.lhs.false5:
  %7 = load ptr, ptr %net.addr, align 8
  %code = getelementptr inbounds %struct.vdla, ptr %7, i32 0, i32 8
  %8 = load ptr, ptr %code, align 8
  %cmp6 = icmp eq ptr %8, null
  br i1 %cmp6, label %if.then12, label %lor.lhs.false8

lor.lhs.false8:
  %9 = load ptr, ptr %net.addr, align 8
  %code9 = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 8
  %10 = load ptr, ptr %code9, align 8
  %begin = getelementptr inbounds %struct.vdla_code, ptr %10, i32 0, i32 3
  %11 = load ptr, ptr %begin, align 8
  %cmp10 = icmp eq ptr %11, null
  br i1 %cmp10, label %if.then12, label %if.end13

if.then12:
  store i32 0, ptr %retval, align 4
  br label %return

if.end13:
  %12 = load ptr, ptr %net.addr, align 8
  %pool_memory = getelementptr inbounds %struct.vdla, ptr %12, i32 0, i32 27
  %arraydecay = getelementptr inbounds [384 x i8], ptr %pool_memory, i64 0, i64 0
  %13 = ptrtoint ptr %arraydecay to i64
  store i64 %13, ptr %memory, align 8
  %14 = load ptr, ptr %net.addr, align 8
  %pool_memory14 = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 27
  %arraydecay15 = getelementptr inbounds [384 x i8], ptr %pool_memory14, i64 0, i64 0
  %15 = load i64, ptr %memory, align 8
  %rem = urem i64 %15, 64
  %sub = sub i64 64, %rem
  %rem16 = urem i64 %sub, 64
  %add.ptr = getelementptr inbounds i8, ptr %arraydecay15, i64 %rem16
  %16 = load ptr, ptr %net.addr, align 8
  %pool17 = getelementptr inbounds %struct.vdla, ptr %16, i32 0, i32 24
  store ptr %add.ptr, ptr %pool17, align 8
  %17 = load ptr, ptr %net.addr, align 8
  %code18 = getelementptr inbounds %struct.vdla, ptr %17, i32 0, i32 8
  %18 = load ptr, ptr %code18, align 8
  %begin19 = getelementptr inbounds %struct.vdla_code, ptr %18, i32 0, i32 3
  %19 = load ptr, ptr %begin19, align 8
  %20 = load ptr, ptr %net.addr, align 8
  %pool20 = getelementptr inbounds %struct.vdla, ptr %20, i32 0, i32 24
  %21 = load ptr, ptr %pool20, align 8
  call void %19(ptr %21)
  br label %while.cond

while.cond:
  %22 = load ptr, ptr %net.addr, align 8
  %threads21 = getelementptr inbounds %struct.vdla, ptr %22, i32 0, i32 25
  %23 = load i32, ptr %threads21, align 8
  %24 = load i32, ptr %threads.addr, align 4
  %sub22 = sub i32 %24, 1
  %cmp23 = icmp ult i32 %23, %sub22
  br i1 %cmp23, label %while.body, label %while.end

while.body:
  %25 = load ptr, ptr %net.addr, align 8
  %thread_ids = getelementptr inbounds %struct.vdla, ptr %25, i32 0, i32 26
  %26 = load ptr, ptr %net.addr, align 8
  %threads25 = getelementptr inbounds %struct.vdla, ptr %26, i32 0, i32 25
  %27 = load i32, ptr %threads25, align 8
  %idxprom = zext i32 %27 to i64
  %arrayidx = getelementptr inbounds [64 x i64], ptr %thread_ids, i64 0, i64 %idxprom
  %28 = load ptr, ptr %net.addr, align 8
  %call26 = call i32 @pthread_create(ptr %arrayidx, ptr null, ptr @work, ptr %28)
  %tobool27 = icmp ne i32 %call26, 0
  br i1 %tobool27, label %if.then28, label %if.end29

if.then28:
  br label %while.end

if.end29:
  %29 = load ptr, ptr %net.addr, align 8
  %threads30 = getelementptr inbounds %struct.vdla, ptr %29, i32 0, i32 25
  %30 = load i32, ptr %threads30, align 8
  %add = add i32 %30, 1
  store i32 %add, ptr %threads30, align 8
  br label %while.cond

while.end:
  %31 = load ptr, ptr %net.addr, align 8
  call void @pin(ptr %31)
  store i32 0, ptr %retval, align 4
  br label %return

return:
  %32 = load i32, ptr %retval, align 4
  ret i32 %32
}

declare i32 @fail(ptr, i32, ptr, ptr, i64)

declare i32 @pthread_create(ptr, ptr, ptr, ptr)

define internal ptr @work(ptr %context) nounwind {
entry:
  %context.addr = alloca ptr, align 8
  %net = alloca ptr, align 8
  store ptr %context, ptr %context.addr, align 8
  %0 = load ptr, ptr %context.addr, align 8
  store ptr %0, ptr %net, align 8
  %1 = load ptr, ptr %net, align 8
  %code = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 8
  %2 = load ptr, ptr %code, align 8
  %work = getelementptr inbounds %struct.vdla_code, ptr %2, i32 0, i32 4
  %3 = load ptr, ptr %work, align 8
  %4 = load ptr, ptr %net, align 8
  %pool = getelementptr inbounds %struct.vdla, ptr %4, i32 0, i32 24
  %5 = load ptr, ptr %pool, align 8
  call void %3(ptr %5)
  ret ptr null
}

define internal void @pin(ptr %net) nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %mask = alloca %struct.mask, align 16
  %cpu = alloca i32, align 4
  %others = alloca i64, align 8
  %n = alloca i32, align 4
  %n7 = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  %call = call i32 @sched_getcpu()
  store i32 %call, ptr %cpu, align 4
  %0 = load i32, ptr %cpu, align 4
  %cmp = icmp slt i32 %0, 0
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %call1 = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %tobool = icmp ne i32 %call1, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:
  br label %for.end18

if.end:
  %1 = load i32, ptr %cpu, align 4
  %conv = sext i32 %1 to i64
  %rem = urem i64 %conv, 64
  %shl = shl i64 1, %rem
  %not = xor i64 %shl, -1
  %words = getelementptr inbounds %struct.mask, ptr %mask, i32 0, i32 0
  %2 = load i32, ptr %cpu, align 4
  %conv2 = sext i32 %2 to i64
  %div = udiv i64 %conv2, 64
  %arrayidx = getelementptr inbounds [16 x i64], ptr %words, i64 0, i64 %div
  %3 = load i64, ptr %arrayidx, align 8
  %and = and i64 %3, %not
  store i64 %and, ptr %arrayidx, align 8
  store i64 0, ptr %others, align 8
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %4 = load i32, ptr %n, align 4
  %cmp3 = icmp slt i32 %4, 16
  br i1 %cmp3, label %for.body, label %for.end

for.body:
  %words5 = getelementptr inbounds %struct.mask, ptr %mask, i32 0, i32 0
  %5 = load i32, ptr %n, align 4
  %idxprom = sext i32 %5 to i64
  %arrayidx6 = getelementptr inbounds [16 x i64], ptr %words5, i64 0, i64 %idxprom
  %6 = load i64, ptr %arrayidx6, align 8
  %7 = load i64, ptr %others, align 8
  %or = or i64 %7, %6
  store i64 %or, ptr %others, align 8
  br label %for.inc

for.inc:
  %8 = load i32, ptr %n, align 4
  %inc = add nsw i32 %8, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  store i32 0, ptr %n7, align 4
  br label %for.cond8

for.cond8:
  %9 = load i64, ptr %others, align 8
  %tobool9 = icmp ne i64 %9, 0
  br i1 %tobool9, label %land.rhs, label %land.end

land.rhs:
  %10 = load i32, ptr %n7, align 4
  %11 = load ptr, ptr %net.addr, align 8
  %threads = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 25
  %12 = load i32, ptr %threads, align 8
  %cmp10 = icmp ult i32 %10, %12
  br label %land.end

land.end:
  %13 = phi i1 [ false, %for.cond8 ], [ %cmp10, %land.rhs ]
  br i1 %13, label %for.body12, label %for.end18

for.body12:
  %14 = load ptr, ptr %net.addr, align 8
  %thread_ids = getelementptr inbounds %struct.vdla, ptr %14, i32 0, i32 26
  %15 = load i32, ptr %n7, align 4
  %idxprom13 = zext i32 %15 to i64
  %arrayidx14 = getelementptr inbounds [64 x i64], ptr %thread_ids, i64 0, i64 %idxprom13
  %16 = load i64, ptr %arrayidx14, align 8
  %call15 = call i32 @pthread_setaffinity_np(i64 %16, i64 128, ptr %mask)
  br label %for.inc16

for.inc16:
  %17 = load i32, ptr %n7, align 4
  %inc17 = add i32 %17, 1
  store i32 %inc17, ptr %n7, align 4
  br label %for.cond8

for.end18:
  ret void
}

define void @vdla_close(ptr %net) noinline nounwind {
entry:
  %net.addr = alloca ptr, align 8
  %n = alloca i32, align 4
  store ptr %net, ptr %net.addr, align 8
  %0 = load ptr, ptr %net.addr, align 8
  %cmp = icmp eq ptr %0, null
  br i1 %cmp, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %1 = load ptr, ptr %net.addr, align 8
  %pool = getelementptr inbounds %struct.vdla, ptr %1, i32 0, i32 24
  %2 = load ptr, ptr %pool, align 8
  %cmp1 = icmp eq ptr %2, null
  br i1 %cmp1, label %if.then, label %if.end

if.then:
  br label %return

if.end:
  %3 = load ptr, ptr %net.addr, align 8
  %code = getelementptr inbounds %struct.vdla, ptr %3, i32 0, i32 8
  %4 = load ptr, ptr %code, align 8
  %set = getelementptr inbounds %struct.vdla_code, ptr %4, i32 0, i32 5
  %5 = load ptr, ptr %set, align 8
  %6 = load ptr, ptr %net.addr, align 8
  %pool2 = getelementptr inbounds %struct.vdla, ptr %6, i32 0, i32 24
  %7 = load ptr, ptr %pool2, align 8
  call void %5(ptr %7, i64 2)
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %8 = load i32, ptr %n, align 4
  %9 = load ptr, ptr %net.addr, align 8
  %threads = getelementptr inbounds %struct.vdla, ptr %9, i32 0, i32 25
  %10 = load i32, ptr %threads, align 8
  %cmp3 = icmp ult i32 %8, %10
  br i1 %cmp3, label %for.body, label %for.end

for.body:
  %11 = load ptr, ptr %net.addr, align 8
  %thread_ids = getelementptr inbounds %struct.vdla, ptr %11, i32 0, i32 26
  %12 = load i32, ptr %n, align 4
  %idxprom = zext i32 %12 to i64
  %arrayidx = getelementptr inbounds [64 x i64], ptr %thread_ids, i64 0, i64 %idxprom
  %13 = load i64, ptr %arrayidx, align 8
  %call = call i32 @pthread_join(i64 %13, ptr null)
  br label %for.inc

for.inc:
  %14 = load i32, ptr %n, align 4
  %inc = add i32 %14, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  %15 = load ptr, ptr %net.addr, align 8
  %threads4 = getelementptr inbounds %struct.vdla, ptr %15, i32 0, i32 25
  store i32 0, ptr %threads4, align 8
  %16 = load ptr, ptr %net.addr, align 8
  %pool5 = getelementptr inbounds %struct.vdla, ptr %16, i32 0, i32 24
  store ptr null, ptr %pool5, align 8
  br label %return

return:
  ret void
}

declare i32 @pthread_join(i64, ptr)

declare i32 @sched_getcpu()

declare i32 @sched_getaffinity(i32, i64, ptr)

declare i32 @pthread_setaffinity_np(i64, i64, ptr)
