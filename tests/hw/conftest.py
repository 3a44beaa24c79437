"""``arithmetic`` is a module beside the tests: the tests aren't a package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
