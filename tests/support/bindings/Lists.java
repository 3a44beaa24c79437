// Runs a network with lists and optional outputs, and calls it wrongly: what it prints is in
// tests/vdla/packaging/test_bindings.py.

import java.nio.file.Path;

public final class Lists {
  static void show(int[] shape, float[] values) {
    for (int side : shape) System.out.print(side + "x");
    for (float value : values) System.out.print(" " + (int) value);
    System.out.println();
  }

  static void fail(Runnable call) {
    try {
      call.run();
    } catch (Vdla.Error error) {
      System.out.println(error.getMessage());
    }
  }

  static void give(Vdla net, long count, int flag) {
    net.write("rows", new float[] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    net.write("count", new long[] {count});
    net.write("sizes", new long[] {1, 2, 2, 1, 0, 2});
    net.write("flag", new byte[] {(byte) flag});
  }

  public static void main(String[] arguments) throws InterruptedException {
    Path library = Path.of(arguments[0]);
    try (Vdla net = new Vdla(library, "lists"); Vdla second = new Vdla(library, "lists")) {
      second.start(2);
      for (Vdla.Info info : net.inputs()) {
        System.out.print(info.name() + " " + info.type() + " ");
        show(info.shape(), new float[0]);
      }
      fail(() -> net.write("picture", new float[12]));
      fail(() -> net.write("rows", new float[11]));
      fail(() -> net.write("rows", new double[12]));
      fail(() -> net.output("plain", float[].class));
      fail(net::run);
      give(net, 2, 0);
      net.run();
      Thread other = new Thread(() -> {
        give(second, 3, 1);
        second.run();
      });
      other.start();
      other.join();
      fail(net::run);
      show(new int[0], net.output("plain", float[].class));
      for (String name : new String[] {"each", "cut", "list", "empty", "maybe"})
        for (Vdla.Element<float[]> each : net.list(name, float[].class)) show(each.shape(), each.values());
      for (String name : new String[] {"plain", "none", "maybe", "empty", "list"})
        System.out.print((net.has(name) ? 1 : 0) + " ");
      System.out.println(second.has("maybe") ? 1 : 0);
      show(new int[0], second.output("maybe", float[].class));
      fail(() -> net.output("none", float[].class));
      fail(() -> net.output("each", float[].class));
      fail(() -> net.output("plain", double[].class));
      fail(() -> net.list("lists", float[].class));
      fail(() -> second.start(65));
    }
  }
}
