"""Generates ``pool64.ll``, ``pool32.ll`` and ``numbers.py`` from ``pool.c``.

    python -m vdla.runtime.pool.generate

The clang inside the package ziglang compiles. The text is clang's before any optimization, since
LLVM optimizes it for each target together with the functions around it. What ties it to a
processor or to a version of LLVM is left out: triple, data layout, attributes, metadata. Two
processors of each width have to give the same text. Users need no compiler: the files are part of
the package.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from vdla.support.files import write_bytes

FOLDER = Path(__file__).parent
SOURCE = FOLDER / "pool.c"
COMMAND = "python -m vdla.runtime.pool.generate"
TARGETS = {
    64: ("x86_64-linux-gnu", "aarch64-linux-gnu"),
    32: ("arm-linux-gnueabihf", "x86-linux-gnu"),
}
FLAGS = (
    "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-command-line-argument",
    "-Wno-unused-function", "-ffreestanding", "-funsigned-char", "-fPIC", "-fno-sanitize=all",
    "-fno-discard-value-names",
    "-O0", "-Xclang", "-disable-O0-optnone", "-g0", "-S", "-emit-llvm",
)  # fmt: skip
NUMBERS = {
    "POOL_BYTES": ("sizeof(struct pool)", ""),
    "ALIGNMENT_BYTES": ("_Alignof(struct pool)", "where a pool may begin"),
    "COPY": ("COPY", "kinds of calls without a function"),
    "TAKE": ("TAKE", ""),
    "PUT": ("PUT", ""),
    "CLEAR": ("CLEAR", ""),
    "JUMP": ("JUMP", ""),
    "WHEN": ("WHEN", ""),
    "UNLESS": ("UNLESS", ""),
    "NEXT": ("NEXT", ""),
    "OPEN": ("OPEN", "a pool's states"),
    "CLOSED": ("CLOSED", ""),
    "OVER": ("OVER", ""),
    "TASKS": ("TASKS", "that a job has at most"),
}  # name: expression in C, comment
LEFT_OUT = re.compile(r"(;|source_filename|target |attributes |!)")  # lines that begin so
TRAILING = re.compile(r"(, !llvm\.loop !\d+| #\d+|\s*; preds = .*)$")
DEFINITION = re.compile(r"^define (internal |)(?:hidden |)(.*) #\d+ \{$")
TABLE = re.compile(r"^(@.* = .*constant \[.*), align \d+$")  # processors align them as they like


def ziglang_version() -> str | None:
    """The installed version of the package ziglang, None if there is none."""
    try:
        return metadata.version("ziglang")
    except metadata.PackageNotFoundError:
        return None


def generated_files() -> dict[str, str]:
    """The text of each generated file by its name, as the installed ziglang compiles them."""
    source = sha256(SOURCE.read_bytes()).hexdigest()
    lines = f"From pool.c by {COMMAND}", f"ziglang {ziglang_version()}, SHA-256 {source}"
    code = {f"pool{bits}.ll": _neutral_text(bits) for bits in TARGETS}
    head = "".join(f"; {line}\n" for line in lines)
    foot = "".join(f"# {line}\n" for line in lines)
    return {
        **{name: f"{head}\n{text}" for name, text in code.items()},
        "numbers.py": f'"""The pool\'s numbers, as ``pool.c`` has them."""\n\n{foot}\n{_numbers()}',
    }


def _neutral_text(bits: int) -> str:
    """The pool as LLVM's text, for any processor with pointers of so many bits."""
    return agreed(bits, {t: neutral(compiled(SOURCE.read_text(), t)) for t in TARGETS[bits]})


def _numbers() -> str:
    """Python that assigns each of NUMBERS its value in C."""
    constants = "".join(
        f"const long long number_{name} = {expression};\n"
        for name, (expression, _) in NUMBERS.items()
    )
    texts = {}
    for target in (t for targets in TARGETS.values() for t in targets):
        text = compiled(SOURCE.read_text() + constants, target)
        values = dict(re.findall(r"^@number_(\w+) = .*constant i64 (\d+)", text, re.MULTILINE))
        texts[target] = "".join(
            f"{name} = {values[name]}{f'  # {comment}' if comment else ''}\n"
            for name, (_, comment) in NUMBERS.items()
        )
    return agreed("64 and 32", texts)


def agreed(bits: object, texts: Mapping[str, str]) -> str:
    """The text of all targets, by whose names it is given; ends the process if they differ."""
    if len(set(texts.values())) != 1:
        sys.exit(f"pool.c: expected one text for {bits} bits, found several: {', '.join(texts)}")
    return next(iter(texts.values()))


def neutral(text: str) -> str:
    """LLVM's text without what is of one processor, one version of LLVM or one compiler."""
    lines = []
    for line in text.splitlines():
        if LEFT_OUT.match(line):
            continue
        line = TABLE.sub(r"\1", DEFINITION.sub(_definition, line))
        line = TRAILING.sub("", line)
        lines.append(re.sub(r" (noundef|dso_local|nuw)\b", "", line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _definition(line: re.Match[str]) -> str:
    """The first line of a function, with attributes that every processor has.

    ``nounwind``: else ARM's objects ask for a C++ runtime. ``noinline``, if it is exported: else
    LLVM compiles the steps of each parallel loop twice, once for the case that there is no pool.
    """
    internal, signature = line.groups()
    attributes = "nounwind" if internal else "noinline nounwind"
    return f"define {internal}{signature} {attributes} {{"


def compiled(source: str, target: str, name: str = SOURCE.name) -> str:
    """C as LLVM's text, by clang for one of ziglang's targets; errors call it ``name``."""
    with TemporaryDirectory() as folder:
        Path(folder, name).write_text(source)
        command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *FLAGS]
        done = subprocess.run(
            [*command, "-o", "code.ll", name],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(done.stderr.strip())
        return Path(folder, "code.ll").read_text()


def main() -> None:
    """Writes the generated files."""
    if ziglang_version() is None:
        sys.exit("pool.c: expected the package ziglang, found none; run: pip install 'vdla[dev]'")
    for name, text in generated_files().items():
        write_bytes(FOLDER / name, text.encode())
        print(FOLDER / name)


if __name__ == "__main__":
    main()
