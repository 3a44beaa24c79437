// A network that `vdla package --as shared` made, in Java 22 or newer, on Linux with 64 bits.
//
//     try (Vdla net = new Vdla(Path.of("libdigits.so"), "digits")) {
//       net.write("image", new float[64]);  // each input, before each run
//       net.run();
//       float[] scores = net.output("logits", float[].class);
//     }
//
// Outputs are copies. Of the list y, list("y", float[].class) has the elements; has("y") tells
// whether the optional output y is there. Elements are of Java's type that has their bytes: bool
// and uint8 are byte, float16 is short. What fails throws Vdla.Error. Threads may use several
// networks at once, and one network in turns. java takes --enable-native-access=ALL-UNNAMED.

import java.lang.foreign.*;
import java.lang.reflect.Array;
import java.nio.file.Path;
import java.util.*;

public final class Vdla implements AutoCloseable {
  /** What went wrong, in words. */
  public static final class Error extends RuntimeException {
    Error(String text) { super(text); }
  }

  /** An input or output; where one output is a list, its shape begins with the length. */
  public record Info(String name, String type, int[] shape) {}

  /** An element of a list, row-major. */
  public record Element<T>(int[] shape, T values) {}

  private static final List<String> TYPES = List.of(  // of enum vdla_type
      "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
      "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
      "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2");
  private static final int BAD_MEMORY = 4;

  // struct vdla_tensor.
  private record Tensor(String name, MemorySegment data, int type, int[] shape, MemorySegment sizes, boolean isList) {
    Tensor(MemorySegment at) {
      this(at.get(ValueLayout.ADDRESS, 0).reinterpret(Long.MAX_VALUE).getString(0),
           at.get(ValueLayout.ADDRESS, 8).reinterpret(at.get(ValueLayout.JAVA_LONG, 16)),
           at.get(ValueLayout.JAVA_INT, 24), new int[at.get(ValueLayout.JAVA_INT, 28)],
           at.get(ValueLayout.ADDRESS, 96).reinterpret(Long.MAX_VALUE),
           at.get(ValueLayout.JAVA_INT, 104) != 0);
      Arrays.setAll(shape, axis -> (int) at.get(ValueLayout.JAVA_LONG, 32 + 8 * axis));
    }

    boolean isThere() { return data.address() != 0; }

    Info info() { return new Info(name, TYPES.get(type), shape); }

    ValueLayout stored() {
      return switch (type) {
        case 3, 4, 9, 12 -> ValueLayout.JAVA_SHORT;
        case 5, 6 -> ValueLayout.JAVA_INT;
        case 7, 8 -> ValueLayout.JAVA_LONG;
        case 10 -> ValueLayout.JAVA_FLOAT;
        case 11 -> ValueLayout.JAVA_DOUBLE;
        default -> ValueLayout.JAVA_BYTE;
      };
    }

    <T> T elements(Class<T> kind) {
      Class<?> own = stored().carrier();
      if (kind.componentType() != own)
        throw new Error("output " + name + ": expected to be read as " + own + ", found " + kind.componentType());
      int count = (int) (data.byteSize() / stored().byteSize());
      Object made = Array.newInstance(own, count);
      MemorySegment.copy(data, stored(), 0, made, 0, count);
      return kind.cast(made);
    }
  }

  private final Arena arena = Arena.ofShared();
  private final SymbolLookup library;
  private final MemorySegment net, tensor = arena.allocate(112, 8);
  private final Set<String> written = new HashSet<>();
  private boolean isRun;

  /** Opens the network of a library by its name, that of NAME_open. */
  public Vdla(Path library, String name) {
    MemorySegment opened = arena.allocate(ValueLayout.ADDRESS);
    try {
      this.library = SymbolLookup.libraryLookup(library, arena);
      long status = BAD_MEMORY;
      for (long bytes = 4096, last = 0; status == BAD_MEMORY && bytes > last; ) {
        MemorySegment memory = arena.allocate(bytes, 64);
        status = call(name + "_open", memory, last = bytes, MemorySegment.NULL, opened);
        bytes = call("vdla_memory", opened.get(ValueLayout.ADDRESS, 0));
      }
      net = opened.get(ValueLayout.ADDRESS, 0);
      check(status);
    } catch (RuntimeException error) {
      arena.close();
      throw error;
    }
  }

  /** Has threads share the work, the caller's among them; once. */
  public void start(int threads) { check(call("vdla_start", net, threads)); }

  /** Ends threads and gives back the memory. */
  @Override public void close() {
    call("vdla_close", net);
    arena.close();
  }

  public List<Info> inputs() { return tensors("vdla_input").stream().map(Tensor::info).toList(); }
  public List<Info> outputs() { return tensors("vdla_output").stream().map(Tensor::info).toList(); }

  /** Writes all elements of an input, an array. */
  public void write(String name, Object values) {
    Tensor input = named("inputs", tensors("vdla_input"), name, false).get(0);
    Class<?> own = input.stored().carrier(), kind = values.getClass().componentType();
    int count = Arrays.stream(input.shape).reduce(1, (a, b) -> a * b);
    int length = kind == null ? 1 : Array.getLength(values);
    if (kind != own || length != count)
      throw new Error("input " + name + ": expected " + own + "[" + count + "], found "
          + (kind == null ? values.getClass().getSimpleName() : kind.getSimpleName() + "[" + length + "]"));
    isRun = false;
    MemorySegment.copy(values, 0, input.data, input.stored(), 0, count);
    written.add(name);
  }

  /** One inference. */
  public void run() {
    for (Tensor input : tensors("vdla_input"))
      if (!written.contains(input.name))
        throw new Error("input " + input.name + ": expected its elements before each run, found none");
    written.clear();
    check(call("vdla_run", net));
    isRun = true;
  }

  /** Tells whether the last run gave an output: it may leave out an optional one. */
  public boolean has(String name) {
    return results(name, true).stream().anyMatch(each -> each.isThere() || each.isList);
  }

  /** Copies an output's elements: output("y", float[].class). */
  public <T> T output(String name, Class<T> kind) {
    Tensor output = results(name, false).get(0);
    if (output.isThere() && !output.isList) return output.elements(kind);
    throw new Error("output " + name + ": expected an array, found " + (output.isList ? "a list" : "none"));
  }

  /** Copies a list's elements, be they outputs y[0], y[1] … or in one output y. */
  public <T> List<Element<T>> list(String name, Class<T> kind) {
    List<Element<T>> made = new ArrayList<>();
    for (Tensor output : results(name, true)) {
      if (!output.isThere()) continue;
      T all = output.elements(kind);
      int length = output.isList ? output.shape[0] : 1;
      int[] shape = Arrays.copyOfRange(output.shape, output.isList ? 1 : 0, output.shape.length);
      for (int n = 0; n < length; n++) {
        int[] kept = shape.clone();
        long row = (long) n * kept.length;
        if (output.sizes.address() != 0)
          Arrays.setAll(kept, axis -> (int) output.sizes.getAtIndex(ValueLayout.JAVA_LONG, row + axis));
        int each = Array.getLength(all) / length;
        made.add(new Element<>(kept, kind.cast(first(all, n * each, each, shape, kept))));
      }
    }
    return made;
  }

  // Elements of an array of some shape that are among the first ones along each axis.
  private static Object first(Object all, int start, int each, int[] shape, int[] kept) {
    Object made = Array.newInstance(all.getClass().componentType(), Arrays.stream(kept).reduce(1, (a, b) -> a * b));
    for (int n = 0, count = 0; n < each; n++) {
      boolean isWithin = true;
      for (int axis = shape.length - 1, rest = n; axis >= 0; rest /= shape[axis--])
        isWithin &= rest % shape[axis] < kept[axis];
      if (isWithin) System.arraycopy(all, start + n, made, count++, 1);
    }
    return made;
  }

  private List<Tensor> tensors(String function) {
    List<Tensor> made = new ArrayList<>();
    while (call(function, net, made.size(), tensor) == 0) made.add(new Tensor(tensor));
    return made;
  }

  private List<Tensor> results(String name, boolean lists) {
    if (isRun) return named("outputs", tensors("vdla_output"), name, lists);
    throw new Error("output " + name + ": expected a run after inputs are written, found none");
  }

  // The input or output of a name, or those of a list: y, or y[0], y[1] …
  private static List<Tensor> named(String kind, List<Tensor> all, String name, boolean lists) {
    List<Tensor> made = all.stream().filter(each -> each.name.equals(name) || lists && each.name.startsWith(name + "[")
        && each.name.indexOf(']', name.length()) == each.name.length() - 1).toList();
    List<String> names = all.stream().map(Tensor::name).toList();
    if (made.isEmpty()) throw new Error(kind + ": expected " + String.join(", ", names) + ", found " + name);
    return made;
  }

  private void check(long status) {
    if (status == 0) return;
    MemorySegment text = MemorySegment.ofAddress(call("vdla_error", net));
    throw new Error(text.reinterpret(Long.MAX_VALUE).getString(0));
  }

  // Calls a function of C that returns an int, a size or an address.
  private long call(String name, Object... arguments) {
    MemoryLayout[] kinds = Arrays.stream(arguments).map(each -> each instanceof Integer ? ValueLayout.JAVA_INT
        : each instanceof Long ? ValueLayout.JAVA_LONG : ValueLayout.ADDRESS).toArray(MemoryLayout[]::new);
    boolean isWide = name.equals("vdla_memory") || name.equals("vdla_error");
    ValueLayout result = isWide ? ValueLayout.JAVA_LONG : ValueLayout.JAVA_INT;
    MemorySegment symbol = library.find(name).orElseThrow(() -> new Error("library: expected " + name + ", found none"));
    FunctionDescriptor described = FunctionDescriptor.of(result, kinds);
    try {
      var handle = Linker.nativeLinker().downcallHandle(symbol, described);
      return ((Number) handle.invokeWithArguments(arguments)).longValue();
    } catch (Throwable error) {
      throw new IllegalStateException(name, error);
    }
  }
}
