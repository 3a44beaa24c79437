"""The error of an option: light, since every command imports it."""


class UsageError(ValueError):
    """An option whose value makes no sense."""


def numbers(option: str, text: str, low: int, high: int | None = None) -> list[int]:
    """The value of an option that lists distinct numbers, with commas between them."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    inside = all(low <= n and (high is None or n <= high) for n in found)
    if not found or not inside or len(set(found)) < len(found):
        span = f"from {low} to {high}" if high is not None else f"from {low} up"
        raise UsageError(f"{option}: expected distinct numbers {span}, found {text!r}")
    return found
