"""LLVM's text of small functions."""

LOOP = """
define void @f(ptr %p, i32 %task) {
entry:
  br label %loop

loop:                                             ; preds = %next, %entry
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %k = add nsw i64 %i, -1
  %in = icmp ult i64 %k, 6
  br i1 %in, label %inside, label %next

inside:
  %q = getelementptr i8, ptr %p, i64 %i
  %a = load <4 x float>, ptr %q, align 4, !alias.scope !45
  %b = call <4 x float> @llvm.fma.v4f32(<4 x float> %a, <4 x float> %a, <4 x float> %a)
  store <4 x float> %b, ptr %q, align 4
  br label %next

next:
  %j = add nuw nsw i64 %i, 1
  %e = icmp eq i64 %j, 8
  br i1 %e, label %end, label %loop

end:
  ret void
}
"""
