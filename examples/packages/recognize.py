"""Recognizes a digit with the wheel of the bundled network: see docs/packages.md."""

import digits
import numpy as np

IMAGE = """
    ..####..
    .++++##.
    .....##.
    ..++##+.
    .######.
    ...##...
    ..##....
    ..##....
"""

pixels = [[".+#".index(c) / 2 for c in row] for row in IMAGE.split()]
image = np.array(pixels, np.float32).reshape(1, 1, 8, 8)
scores = digits.run(image=image)["logits"][0]
print("digit", scores.argmax())
print(*scores, sep="\n")
