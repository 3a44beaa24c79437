; From pool.c by python -m vdla.runtime.pool.generate
; ziglang 0.17.1, SHA-256 791e067b3f9729d9d184ee6265217898b750ed0d6fa82860f3f0ede9bb25197c

%struct.call = type { ptr, ptr }
%struct.pool = type { i32, [60 x i8], i32, [60 x i8], i32, ptr, ptr, [40 x i8], [64 x i8], [64 x i8] }

@vdla_clock = external constant i32, align 4

define void @vdla_call(ptr %calls, i32 %count, ptr %times) noinline nounwind {
entry:
  %calls.addr = alloca ptr, align 8
  %count.addr = alloca i32, align 4
  %times.addr = alloca ptr, align 8
  %n = alloca i32, align 4
  store ptr %calls, ptr %calls.addr, align 8
  store i32 %count, ptr %count.addr, align 4
  store ptr %times, ptr %times.addr, align 8
  store i32 0, ptr %n, align 4
  br label %for.cond

for.cond:
  %0 = load i32, ptr %n, align 4
  %1 = load i32, ptr %count.addr, align 4
  %cmp = icmp ult i32 %0, %1
  br i1 %cmp, label %for.body, label %for.end

for.body:
  %2 = load ptr, ptr %calls.addr, align 8
  %3 = load i32, ptr %n, align 4
  %idxprom = zext i32 %3 to i64
  %arrayidx = getelementptr inbounds %struct.call, ptr %2, i64 %idxprom
  %function = getelementptr inbounds %struct.call, ptr %arrayidx, i32 0, i32 0
  %4 = load ptr, ptr %function, align 8
  %5 = load ptr, ptr %calls.addr, align 8
  %6 = load i32, ptr %n, align 4
  %idxprom1 = zext i32 %6 to i64
  %arrayidx2 = getelementptr inbounds %struct.call, ptr %5, i64 %idxprom1
  %buffers = getelementptr inbounds %struct.call, ptr %arrayidx2, i32 0, i32 1
  %7 = load ptr, ptr %buffers, align 8
  call void %4(ptr %7)
  %8 = load i32, ptr @vdla_clock, align 4
  %9 = load ptr, ptr %times.addr, align 8
  %10 = load i32, ptr %n, align 4
  %idxprom3 = zext i32 %10 to i64
  %arrayidx4 = getelementptr inbounds [2 x i64], ptr %9, i64 %idxprom3
  %arraydecay = getelementptr inbounds [2 x i64], ptr %arrayidx4, i64 0, i64 0
  %call = call i32 @clock_gettime(i32 %8, ptr %arraydecay)
  br label %for.inc

for.inc:
  %11 = load i32, ptr %n, align 4
  %inc = add i32 %11, 1
  store i32 %inc, ptr %n, align 4
  br label %for.cond

for.end:
  ret void
}

declare i32 @clock_gettime(i32, ptr)

define void @vdla_parallel(ptr %pool, ptr %function, ptr %context, i32 %tasks) noinline nounwind {
entry:
  %pool.addr = alloca ptr, align 8
  %function.addr = alloca ptr, align 8
  %context.addr = alloca ptr, align 8
  %tasks.addr = alloca i32, align 4
  %task = alloca i32, align 4
  %.atomictmp = alloca i32, align 4
  %.atomictmp5 = alloca i32, align 4
  %times = alloca i32, align 4
  %atomic-temp = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 8
  store ptr %function, ptr %function.addr, align 8
  store ptr %context, ptr %context.addr, align 8
  store i32 %tasks, ptr %tasks.addr, align 4
  %0 = load ptr, ptr %pool.addr, align 8
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
  %4 = load ptr, ptr %function.addr, align 8
  %5 = load ptr, ptr %context.addr, align 8
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
  %8 = load ptr, ptr %pool.addr, align 8
  %done = getelementptr inbounds %struct.pool, ptr %8, i32 0, i32 2
  store i32 0, ptr %.atomictmp, align 4
  %9 = load i32, ptr %.atomictmp, align 4
  store atomic i32 %9, ptr %done monotonic, align 64
  %10 = load ptr, ptr %function.addr, align 8
  %11 = load ptr, ptr %pool.addr, align 8
  %function3 = getelementptr inbounds %struct.pool, ptr %11, i32 0, i32 5
  store ptr %10, ptr %function3, align 8
  %12 = load ptr, ptr %context.addr, align 8
  %13 = load ptr, ptr %pool.addr, align 8
  %context4 = getelementptr inbounds %struct.pool, ptr %13, i32 0, i32 6
  store ptr %12, ptr %context4, align 16
  %14 = load ptr, ptr %pool.addr, align 8
  %claim = getelementptr inbounds %struct.pool, ptr %14, i32 0, i32 0
  %15 = load i32, ptr %tasks.addr, align 4
  %shl = shl i32 %15, 16
  store i32 %shl, ptr %.atomictmp5, align 4
  %16 = load i32, ptr %.atomictmp5, align 4
  store atomic i32 %16, ptr %claim release, align 64
  %17 = load ptr, ptr %pool.addr, align 8
  call void @take(ptr %17)
  store i32 0, ptr %times, align 4
  br label %while.cond

while.cond:
  %18 = load ptr, ptr %pool.addr, align 8
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
  %pool.addr = alloca ptr, align 8
  %claim = alloca i32, align 4
  %atomic-temp = alloca i32, align 4
  %tasks = alloca i32, align 4
  %task = alloca i32, align 4
  %count = alloca i32, align 4
  %.atomictmp = alloca i32, align 4
  %cmpxchg.bool = alloca i8, align 1
  %function = alloca ptr, align 8
  %context = alloca ptr, align 8
  %end = alloca i32, align 4
  %.atomictmp9 = alloca i32, align 4
  %atomic-temp10 = alloca i32, align 4
  %atomic-temp12 = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 8
  %0 = load ptr, ptr %pool.addr, align 8
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
  %9 = load ptr, ptr %pool.addr, align 8
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
  %18 = load ptr, ptr %pool.addr, align 8
  %function5 = getelementptr inbounds %struct.pool, ptr %18, i32 0, i32 5
  %19 = load ptr, ptr %function5, align 8
  store ptr %19, ptr %function, align 8
  %20 = load ptr, ptr %pool.addr, align 8
  %context6 = getelementptr inbounds %struct.pool, ptr %20, i32 0, i32 6
  %21 = load ptr, ptr %context6, align 16
  store ptr %21, ptr %context, align 8
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
  %26 = load ptr, ptr %function, align 8
  %27 = load ptr, ptr %context, align 8
  %28 = load i32, ptr %task, align 4
  call void %26(ptr %27, i32 %28)
  br label %for.inc

for.inc:
  %29 = load i32, ptr %task, align 4
  %inc = add i32 %29, 1
  store i32 %inc, ptr %task, align 4
  br label %for.cond

for.end:
  %30 = load ptr, ptr %pool.addr, align 8
  %done = getelementptr inbounds %struct.pool, ptr %30, i32 0, i32 2
  %31 = load i32, ptr %count, align 4
  store i32 %31, ptr %.atomictmp9, align 4
  %32 = load i32, ptr %.atomictmp9, align 4
  %33 = atomicrmw add ptr %done, i32 %32 release, align 64
  store i32 %33, ptr %atomic-temp10, align 4
  %34 = load i32, ptr %atomic-temp10, align 4
  %35 = load ptr, ptr %pool.addr, align 8
  %claim11 = getelementptr inbounds %struct.pool, ptr %35, i32 0, i32 0
  %36 = load atomic i32, ptr %claim11 monotonic, align 64
  store i32 %36, ptr %atomic-temp12, align 4
  %37 = load i32, ptr %atomic-temp12, align 4
  store i32 %37, ptr %claim, align 4
  br label %while.body
}

define internal void @rest(ptr %times) nounwind {
entry:
  %times.addr = alloca ptr, align 8
  store ptr %times, ptr %times.addr, align 8
  call void @vdla_pause()
  %0 = load ptr, ptr %times.addr, align 8
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
  %pool.addr = alloca ptr, align 8
  store ptr %pool, ptr %pool.addr, align 8
  %0 = load ptr, ptr %pool.addr, align 8
  %mutex = getelementptr inbounds %struct.pool, ptr %0, i32 0, i32 8
  %arraydecay = getelementptr inbounds [64 x i8], ptr %mutex, i64 0, i64 0
  %call = call i32 @pthread_mutex_init(ptr %arraydecay, ptr null)
  %1 = load ptr, ptr %pool.addr, align 8
  %condition = getelementptr inbounds %struct.pool, ptr %1, i32 0, i32 9
  %arraydecay1 = getelementptr inbounds [64 x i8], ptr %condition, i64 0, i64 0
  %call2 = call i32 @pthread_cond_init(ptr %arraydecay1, ptr null)
  %2 = load ptr, ptr %pool.addr, align 8
  %claim = getelementptr inbounds %struct.pool, ptr %2, i32 0, i32 0
  store i32 0, ptr %claim, align 4
  %3 = load ptr, ptr %pool.addr, align 8
  %done = getelementptr inbounds %struct.pool, ptr %3, i32 0, i32 2
  store i32 0, ptr %done, align 4
  %4 = load ptr, ptr %pool.addr, align 8
  %state = getelementptr inbounds %struct.pool, ptr %4, i32 0, i32 4
  store i32 1, ptr %state, align 4
  ret void
}

declare i32 @pthread_mutex_init(ptr, ptr)

declare i32 @pthread_cond_init(ptr, ptr)

define void @vdla_set(ptr %pool, i64 %state) noinline nounwind {
entry:
  %pool.addr = alloca ptr, align 8
  %state.addr = alloca i64, align 8
  %.atomictmp = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 8
  store i64 %state, ptr %state.addr, align 8
  %0 = load ptr, ptr %pool.addr, align 8
  %mutex = getelementptr inbounds %struct.pool, ptr %0, i32 0, i32 8
  %arraydecay = getelementptr inbounds [64 x i8], ptr %mutex, i64 0, i64 0
  %call = call i32 @pthread_mutex_lock(ptr %arraydecay)
  %1 = load ptr, ptr %pool.addr, align 8
  %state1 = getelementptr inbounds %struct.pool, ptr %1, i32 0, i32 4
  %2 = load i64, ptr %state.addr, align 8
  %conv = trunc i64 %2 to i32
  store i32 %conv, ptr %.atomictmp, align 4
  %3 = load i32, ptr %.atomictmp, align 4
  store atomic i32 %3, ptr %state1 monotonic, align 64
  %4 = load ptr, ptr %pool.addr, align 8
  %mutex2 = getelementptr inbounds %struct.pool, ptr %4, i32 0, i32 8
  %arraydecay3 = getelementptr inbounds [64 x i8], ptr %mutex2, i64 0, i64 0
  %call4 = call i32 @pthread_mutex_unlock(ptr %arraydecay3)
  %5 = load i64, ptr %state.addr, align 8
  %cmp = icmp ne i64 %5, 1
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %6 = load ptr, ptr %pool.addr, align 8
  %condition = getelementptr inbounds %struct.pool, ptr %6, i32 0, i32 9
  %arraydecay6 = getelementptr inbounds [64 x i8], ptr %condition, i64 0, i64 0
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
  %pool.addr = alloca ptr, align 8
  %times = alloca i32, align 4
  %idle = alloca i32, align 4
  %open = alloca i8, align 1
  %atomic-temp = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 8
  store i32 0, ptr %times, align 4
  br label %while.cond

while.cond:
  %0 = load ptr, ptr %pool.addr, align 8
  %call = call i32 @sleep_while_closed(ptr %0)
  %cmp = icmp ne i32 %call, 2
  br i1 %cmp, label %while.body, label %while.end

while.body:
  store i32 0, ptr %idle, align 4
  br label %for.cond

for.cond:
  %1 = load i32, ptr %idle, align 4
  %cmp1 = icmp ule i32 %1, 2048
  br i1 %cmp1, label %for.body, label %for.end

for.body:
  %2 = load ptr, ptr %pool.addr, align 8
  call void @take(ptr %2)
  %3 = load ptr, ptr %pool.addr, align 8
  %state = getelementptr inbounds %struct.pool, ptr %3, i32 0, i32 4
  %4 = load atomic i32, ptr %state monotonic, align 64
  store i32 %4, ptr %atomic-temp, align 4
  %5 = load i32, ptr %atomic-temp, align 4
  %cmp2 = icmp eq i32 %5, 0
  %storedv = zext i1 %cmp2 to i8
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
  ret void
}

define internal i32 @sleep_while_closed(ptr %pool) nounwind {
entry:
  %pool.addr = alloca ptr, align 8
  %state = alloca i32, align 4
  %atomic-temp = alloca i32, align 4
  store ptr %pool, ptr %pool.addr, align 8
  %0 = load ptr, ptr %pool.addr, align 8
  %mutex = getelementptr inbounds %struct.pool, ptr %0, i32 0, i32 8
  %arraydecay = getelementptr inbounds [64 x i8], ptr %mutex, i64 0, i64 0
  %call = call i32 @pthread_mutex_lock(ptr %arraydecay)
  br label %while.cond

while.cond:
  %1 = load ptr, ptr %pool.addr, align 8
  %state1 = getelementptr inbounds %struct.pool, ptr %1, i32 0, i32 4
  %2 = load atomic i32, ptr %state1 monotonic, align 64
  store i32 %2, ptr %atomic-temp, align 4
  %3 = load i32, ptr %atomic-temp, align 4
  store i32 %3, ptr %state, align 4
  %cmp = icmp eq i32 %3, 1
  br i1 %cmp, label %while.body, label %while.end

while.body:
  %4 = load ptr, ptr %pool.addr, align 8
  %condition = getelementptr inbounds %struct.pool, ptr %4, i32 0, i32 9
  %arraydecay2 = getelementptr inbounds [64 x i8], ptr %condition, i64 0, i64 0
  %5 = load ptr, ptr %pool.addr, align 8
  %mutex3 = getelementptr inbounds %struct.pool, ptr %5, i32 0, i32 8
  %arraydecay4 = getelementptr inbounds [64 x i8], ptr %mutex3, i64 0, i64 0
  %call5 = call i32 @pthread_cond_wait(ptr %arraydecay2, ptr %arraydecay4)
  br label %while.cond

while.end:
  %6 = load ptr, ptr %pool.addr, align 8
  %mutex6 = getelementptr inbounds %struct.pool, ptr %6, i32 0, i32 8
  %arraydecay7 = getelementptr inbounds [64 x i8], ptr %mutex6, i64 0, i64 0
  %call8 = call i32 @pthread_mutex_unlock(ptr %arraydecay7)
  %7 = load i32, ptr %state, align 4
  ret i32 %7
}

declare void @vdla_pause()

declare i32 @sched_yield()

declare i32 @pthread_cond_wait(ptr, ptr)
