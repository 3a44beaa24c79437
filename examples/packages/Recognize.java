// Recognizes a digit by the bundled network, from Java: see docs/packages.md, "In other languages".

import java.nio.file.Path;

public final class Recognize {
  private static final String IMAGE =
      "..####.."
      + ".++++##."
      + ".....##."
      + "..++##+."
      + ".######."
      + "...##..."
      + "..##...."
      + "..##....";

  public static void main(String[] arguments) {
    float[] pixels = new float[64];
    for (int n = 0; n < 64; n++) pixels[n] = IMAGE.charAt(n) == '#' ? 1 : IMAGE.charAt(n) == '+' ? 0.5f : 0;
    try (Vdla net = new Vdla(Path.of(arguments[0]), "digits")) {
      net.write("image", pixels);
      net.run();
      float[] scores = net.output("logits", float[].class);
      int best = 0;
      for (int n = 1; n < 10; n++) if (scores[n] > scores[best]) best = n;
      System.out.println("digit " + best);
      for (float score : scores) System.out.println(score);
    } catch (Vdla.Error error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }
}
