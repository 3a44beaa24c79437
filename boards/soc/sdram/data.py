"""The words of beats: to the data pins with a write's column command, from them after a read's."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value

from vdla.hw.interfaces import Port


def write_words(m: Module, pins: Port, cycles: int, beat: Value, moves: Value) -> None:
    """Sends a beat's first words in the cycle in which it ``moves``, the others in those after:
    ``cycles`` in all."""
    bits = len(pins.word_out)
    rest = Signal((cycles - 1) * bits)
    more = Signal(range(cycles))
    m.d.comb += [
        pins.drive.eq(moves | (more != 0)),
        pins.word_out.eq(Mux(moves, beat[:bits], rest[:bits])),
    ]
    with m.If(moves):
        m.d.sync += [rest.eq(beat[bits:]), more.eq(cycles - 1)]
    with m.Elif(more != 0):
        m.d.sync += [rest.eq(rest >> bits), more.eq(more - 1)]


def read_words(m: Module, pins: Port, memory: Port, cycles: int, marks: tuple[Value, ...]) -> None:
    """Shows a beat at ``memory``, ``cycles`` after its column command.

    ``marks`` of this cycle: whether a read's command is shown, whether it is the request's last,
    and its tag.
    """
    mark = Cat(*marks)
    for stage in range(cycles - 1):
        later = Signal(len(mark), name=f"coming_{stage}")
        m.d.sync += later.eq(mark)
        mark = later
    seen = Signal(len(memory.read_data))
    m.d.sync += seen.eq(Cat(seen[len(pins.word_in) :], pins.word_in))
    m.d.sync += Cat(memory.read_valid, memory.read_last, memory.read_tag).eq(mark)
    with m.If(mark[0]):
        m.d.sync += memory.read_data.eq(Cat(seen[len(pins.word_in) :], pins.word_in))
