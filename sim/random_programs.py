"""Random legal programs: every instruction, padding, hazards, token patterns, page crossings.

Instructions are drawn one by one within small windows of each memory, so that they collide often,
each with the exact entries that it touches, as bits of an integer. ``ordering.py`` adds tokens
where they collide. So the order in which the instructions stand is always a legal execution, and
every legal execution gives the same memories. Data and fields are often at their corners: ties and
ends of requantization, the ends of a range, and anything in a field that nothing reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from random import Random

from vdla.isa.config import Config
from vdla.isa.instructions import (
    PAD_BITS,
    Alu,
    Finish,
    Gemm,
    Init,
    Instruction,
    Load,
    Mem,
    Store,
    Uop,
    instruction_bytes,
    instruction_set,
    memories,
    operations,
    stored_memories,
)
from vdla.isa.numbers import INT32_MAX, INT32_MIN, pack_scale
from vdla.isa.program import Program
from vdla.sim.compiled.seams import seam
from vdla.sim.corners import CORNER_SCALES, CORNER_VALUES, random_words
from vdla.sim.ordering import Ordering
from vdla.sim.places import Places, acc_span, dram_span, grouped, load_entries, moved, run, spread

WINDOW = 24  # entries of each buffer that are used, at its start or at its end
UOP_WORDS = 24  # DRAM words that hold micro-ops
DATA_BYTES = 3 * 4096  # DRAM that is loaded from and stored to, from the second page on
DATA_AT = 4096
DRAM_BYTES = 1 << 16

WIDE = 80  # entries of a tile with as much padding as there can be
NOTHING = Uop()  # what lies where nothing was loaded, and in padding


def random_program(config: Config, seed: int, size: int) -> Program:
    """A legal program of ``size`` instructions and FINISH, the same for the same arguments."""
    return Generator(config, Random(seed)).program(size)


# Functions that draw an option's instruction: itself, what it reads, what it writes.
Maker = Callable[["Generator"], tuple[Instruction, Places, Places]]
MAKERS: dict[type[Instruction], Maker] = {}


@seam("choice")
def load_shape_more(memory: int, g: Generator, load: Load) -> Load:
    """The LOAD that an option makes of one of its memory."""
    return load


@seam("then")
def gemm_more(g: Generator, gemm: Gemm) -> None:
    """Draws fields that an option adds to GEMM."""


@seam("|")
def gemm_src_more(g: Generator, gemm: Gemm, src: Places) -> Places:
    """Draws fields that an option adds to GEMM's source; what it reads besides ``src``."""
    return 0


@seam("choice")
def alu_more(op: int, g: Generator, alu: Alu) -> Places:
    """Draws the immediate of an option's operation; what it reads besides ACC."""
    return 0


class Generator:
    """A program as it is drawn: the instructions so far, and what the buffers hold."""

    def __init__(self, config: Config, rng: Random) -> None:
        self.config, self.rng = config, rng
        self.ordering = Ordering(config, rng)
        self.top = rng.random() < 0.3  # use the ends of the buffers, not their starts
        per_word = config.uops_per_word
        self.dram_uops = [self._uop() for _ in range(UOP_WORDS * per_word)]
        self.uops: dict[int, Uop] = {}  # what the UOP buffer holds by now
        buffers = tuple(dict.fromkeys(("acc", *(each.buffer for each in Mem))))
        starts = accumulate((config.depth(b) for b in buffers), initial=0)
        self.place = dict(zip((*buffers, "dram"), starts, strict=True))  # the first bit of each

    def program(self, size: int) -> Program:
        """Draws ``size`` instructions and FINISH."""
        makers = [self._load, self._load, self._gemm, self._alu, self._store]
        for cls in instruction_set(self.config):
            if cls in MAKERS:
                makers.append(partial(MAKERS[cls], self))
        for _ in range(size):
            self.ordering.append(*self.rng.choice(makers)())
        data = {
            0: b"".join(uop.encode(self.config) for uop in self.dram_uops),
            DATA_AT: random_words(DATA_BYTES, self.rng),
        }
        size_bytes = instruction_bytes(self.config) * (size + 1)
        at = DRAM_BYTES - size_bytes - self.rng.randrange(8) * self.config.port_bytes
        stream = [*self.ordering.instructions, Finish()]
        return Program(self.config, stream, at - at % self.config.port_bytes, data)

    def ends(self, low: int, high: int) -> int:
        """A number of a range, often at one of its ends."""
        some = self.rng.randint(low, high)
        return self.rng.choice((low, high, some, some))

    def anything(self, each: Instruction, *names: str) -> None:
        """Fields that nothing reads hold their highest value now and then."""
        for name in names:
            if self.rng.random() < 0.2:
                setattr(each, name, self.highest(type(each), name))

    def highest(self, cls: type[Instruction], name: str) -> int:
        """The highest value that a field holds: small buffers have narrow fields."""
        return next(f for f in cls.fields if f.name == name).bounds(self.config)[1]

    def _sizes(self, cls: type[Instruction], x: int, y: int, z: int) -> tuple[int, int, int]:
        """The sizes of a tile, none beyond what its field holds."""
        most = [self.highest(cls, f"{axis}_size") for axis in "xyz"]
        return min(x, most[0]), min(y, most[1]), min(z, most[2])

    # Instructions -----------------------------------------------------------------------------

    def _load(self) -> tuple[Instruction, Places, Places]:
        memory = self.rng.choice(memories(self.config))
        load = self._load_shape(memory)
        self.anything(load, *(f"{a}_stride" for a in "xyz" if getattr(load, f"{a}_size") < 2))
        entries = load_entries(load)
        load.sram_base = self.base(memory.buffer, entries)
        load = load_shape_more(memory, self, load)
        entries = load_entries(load)
        per_entry = self._entry(memory) // self.config.port_bytes
        span = dram_span(load)
        if memory == Mem.UOP:
            words = UOP_WORDS * self.config.entry("uop") // self.config.port_bytes
            load.dram_base = self.rng.randint(0, words // per_entry - span) * per_entry
            load.dram_base *= self.config.port_bytes
            self._enter_uops(load)
        else:
            load.dram_base = self._dram_base(span * per_entry)
        reads = moved(load, per_entry, self.config.port_bytes) << self.place["dram"]
        return load, reads, run(entries) << self.place[memory.buffer] + load.sram_base

    def _load_shape(self, memory: Mem) -> Load:
        rng = self.rng
        while True:
            x, y, z = rng.choice((0, 1, 2, 5, 11)), rng.choice((1, 2, 3)), rng.choice((1, 1, 2))
            x, y, z = self._sizes(Load, x, y, z)
            pads = [rng.choice((0, 0, 0, 1, 2)) for _ in range(4)]
            wide = rng.random() < 0.1
            if wide:
                pads[rng.randrange(4)] = (1 << PAD_BITS) - 1
            if rng.random() < 0.1:
                y, z = rng.choice(((0, 1), (1, 0)))
            load = Load(
                memory=memory,
                x_size=x,
                y_size=y,
                z_size=z,
                x_stride=rng.choice((1, 1, 1, 0, 2)),
                y_stride=rng.choice((x, x + 1, 3, 0)),
                z_stride=rng.choice((0, 1, 7, x * y)),
                pad_x0=pads[0],
                pad_x1=pads[1],
                pad_y0=pads[2],
                pad_y1=pads[3],
                pad_value=0 if memory == Mem.UOP else self.ends(-128, 127),
                zero=self.ends(-128, 127),
            )
            most = UOP_WORDS if memory == Mem.UOP else DATA_BYTES // self._entry(memory)
            most_entries = min(WIDE if wide else WINDOW, self.config.depth(memory.buffer))
            fits = load_entries(load) <= most_entries
            if fits and dram_span(load) <= most:
                return load

    def _store(self) -> tuple[Instruction, Places, Places]:
        memory = self.rng.choice(stored_memories(self.config))
        store = self._store_shape(memory)
        while not self._store_fits(store):
            store = self._store_shape(memory)
        x, y, z = store.x_size, store.y_size, store.z_size
        sizes = {"x": x, "y": y, "z": z}
        self.anything(store, *(f"{a}_stride" for a, size in sizes.items() if size < 2))
        self.anything(store, *(f"{a}_pitch" for a in "yz" if sizes[a] < 2))
        store.sram_base = self.base("acc", acc_span(store))
        store.scale_base = self.base("acc", z)
        reads = spread(run(x), (y, store.y_pitch), (z, store.z_pitch)) << store.sram_base
        if store.written == "acc8" and x * y:
            reads |= run(z) << store.scale_base
        return store, reads << self.place["acc"], self._stored(store)

    def _stored(self, store: Store) -> Places:
        """Draws where a STORE writes, in DRAM or in INP; the places."""
        port = self.config.port_bytes
        per_entry = self.config.entry(store.written) // port
        span = dram_span(store) * per_entry
        if not store.stays_on_chip:
            store.dram_base = self._dram_base(span)
            return moved(store, per_entry, port) << self.place["dram"]
        columns = self.config.inp_entry // port  # beats of an entry
        beats = self.config.depth("inp") * columns
        offset = self.rng.randint(0, min(max(WINDOW * columns - span, 0), beats - span))
        store.dram_base = (beats - span - offset if self.top else offset) * port
        return grouped(moved(store, per_entry, port), columns) << self.place["inp"]

    def _store_shape(self, memory: Mem) -> Store:
        rng = self.rng
        x, y, z = rng.choice((0, 1, 2, 3, 4, 6)), rng.choice((1, 2)), rng.choice((1, 1, 2))
        x, y, z = self._sizes(Store, x, y, z)
        store = Store(
            memory=memory,
            x_size=x,
            y_size=y,
            z_size=z,
            y_pitch=min(rng.choice((x, x + 1, 0)), self.highest(Store, "y_pitch")),
            z_pitch=min(rng.choice((x * y, 1, 3)), self.highest(Store, "z_pitch")),
            x_stride=rng.choice((1, 1, 1, 0, 2)),
            y_stride=rng.choice((x, x + 1, 0)),
            z_stride=rng.choice((x * y, 0, 5)),
            zero=self.ends(-128, 127),
            low=rng.choice((-128, -128, -5, 0, 20, 127)),  # they may cross: the high one wins
            high=rng.choice((127, 127, 9, 0, -7, -128)),
        )
        if rng.random() < 0.05:
            store.y_size, store.z_size = rng.choice(((0, z), (y, 0)))
        return store

    def _store_fits(self, store: Store) -> bool:
        """Whether ACC has what it reads, and DRAM or INP room for what it writes."""
        config = self.config
        room = config.depth("inp") * config.inp_entry if store.stays_on_chip else DATA_BYTES
        span = dram_span(store) * config.entry(store.written)
        return acc_span(store) <= config.depth("acc") and span <= room

    def _gemm(self) -> tuple[Instruction, Places, Places]:
        gemm = Gemm(init=self.rng.choice(list(Init)), **self._nest())
        gemm_more(self, gemm)
        wgt = self._steps(gemm, "wgt", "wgt_base", ("wgt_0", "wgt_1", "wgt_2"))
        src = self._steps(gemm, "inp", "src_base", ("src_0", "src_1", "src_2"))
        src |= gemm_src_more(self, gemm, src)
        dst = self._steps(gemm, "acc", "dst_base", ("dst_0", "dst_1", "dst_2"))
        bias = self._steps(gemm, "acc", "bias_base", ("bias_0", "bias_1", "bias_2"))
        reads, writes = self._uop_reads(gemm), 0
        for uop in self.uops_of(gemm):
            writes |= dst << uop.dst
            reads |= src << uop.src | wgt << uop.wgt
            if uop.first and gemm.init == Init.BIAS:
                reads |= bias
        self._unread(gemm, "wgt", "bias")
        return gemm, reads | writes, writes

    def _alu(self) -> tuple[Instruction, Places, Places]:
        rng, op = self.rng, self.rng.choice(operations(self.config))
        values = (rng.randint(-9, 9), rng.choice(CORNER_VALUES), self.ends(INT32_MIN, INT32_MAX))
        scales = (pack_scale(rng.random() + 0.01), rng.choice(CORNER_SCALES))
        alu = Alu(
            alu_op=op,
            use_imm=rng.randint(0, 1),
            init=rng.choice((0, 0, 1)),
            imm=rng.choice(scales if op.imm == "scale" else values),
            weight=rng.choice((self.ends(-(1 << 23), (1 << 23) - 1), 0)),
            zero=rng.choice((self.ends(-256, 255), 0)),
            low=rng.choice((-128, -256, 60, 0, 255)),
            high=rng.choice((127, 255, -40, 0, -256)),
            **self._nest(),
        )
        looked_up = alu_more(op, self, alu)
        src = self._steps(alu, "acc", "src_base", ("src_0", "src_1", "src_2"))
        dst = self._steps(alu, "acc", "dst_base", ("dst_0", "dst_1", "dst_2"))
        reads, writes = self._uop_reads(alu), 0
        for uop in self.uops_of(alu):
            writes |= dst << uop.dst
            if not (uop.first and alu.init):
                reads |= looked_up
            if not alu.use_imm or op.y_from_acc:
                reads |= src << uop.src
        self._unread(alu)
        return alu, reads | writes, writes

    # Parts ------------------------------------------------------------------------------------

    def _uop(self) -> Uop:
        """A micro-op whose indices leave room for bases and steps."""
        rng = self.rng
        return Uop(
            first=rng.randint(0, 1),
            dst=rng.randrange(min(6, self.config.depth("acc") // 2)),
            src=rng.randrange(min(6, self.config.depth("inp") // 2, self.config.depth("acc") // 2)),
            wgt=rng.randrange(min(4, self.config.depth("wgt") // 2)),
        )

    def _enter_uops(self, load: Load) -> None:
        """Keeps account of the micro-ops that a LOAD writes; padding is a micro-op of zeros."""
        per_word = self.config.uops_per_word
        first = load.dram_base // self.config.entry("uop")
        at = load.sram_base * per_word
        for k in range(load.z_size):
            for j in range(-load.pad_y0, load.y_size + load.pad_y1):
                for i in range(-load.pad_x0, load.x_size + load.pad_x1):
                    inside = 0 <= j < load.y_size and 0 <= i < load.x_size
                    word = first + k * load.z_stride + j * load.y_stride + i * load.x_stride
                    for u in range(per_word):
                        self.uops[at] = self.dram_uops[word * per_word + u] if inside else NOTHING
                        at += 1

    def _nest(self) -> dict[str, int]:
        rng, depth = self.rng, self.config.uop_depth
        known = sorted(self.uops) or [0]
        begin = rng.choice((known[-1], *known))
        extents = [rng.choice((1, 1, 2, 3)) for _ in range(3)]
        if rng.random() < 0.05:
            extents[rng.randrange(3)] = 0
        if rng.random() < 0.1:
            extents[2] = rng.choice((40, 80))
        count = min(rng.choice((0, 1, 1, 2, 3, 5)), depth - begin)
        nest = {f"extent_{i}": min(n, self.config.depth("acc")) for i, n in enumerate(extents)}
        return {"uop_begin": begin, "uop_count": count, **nest}

    def _unread(self, nest: Gemm | Alu, *bases: str) -> None:
        """A nest that runs no micro-op has anything in its fields, but one count is 0."""
        if nest.steps():
            return
        counts = ["uop_count", "extent_0", "extent_1", "extent_2"]
        counts.remove(self.rng.choice([name for name in counts if getattr(nest, name) == 0]))
        self.anything(nest, "uop_begin", *counts)
        for base in ("dst", "src", *bases):
            self.anything(nest, *(f"{base}_{part}" for part in ("base", 0, 1, 2)))

    def _steps(
        self, nest: Gemm | Alu, buffer: str, base: str, names: tuple[str, str, str]
    ) -> Places:
        """Draws a base and loop steps that stay in the buffer; the entries of all iterations."""
        depth, used = self.config.depth(buffer), self.largest(nest, buffer)
        steps = [min(self.rng.choice((0, 1, 1, 2)), self.highest(type(nest), n)) for n in names]
        extents = [max(n, 1) for n in nest.extents()]
        while (span := sum((n - 1) * s for n, s in zip(extents, steps, strict=True))) > min(
            2 * WINDOW, depth - 1 - used
        ):
            steps[max(range(3), key=lambda i: (extents[i] - 1) * steps[i])] = 0
        highest = depth - 1 - used - span
        first = self.rng.choice((0, self.rng.randint(0, min(8, highest))))
        first = highest - first if self.top else first
        values = {base: first, **dict(zip(names, steps, strict=True))}
        for name, extent in zip(names, extents, strict=True):
            if extent < 2 and self.rng.random() < 0.1:  # nothing reads it
                values[name] = self.highest(type(nest), name)
        for name, number in values.items():
            setattr(nest, name, number)
        loops = zip(nest.extents(), steps, strict=True)
        return spread(1, *loops) << self.place[buffer] + first

    def largest(self, nest: Gemm | Alu, buffer: str) -> int:
        """The greatest index that the nest's micro-ops give to a buffer."""
        uops = self.uops_of(nest)
        name = {"wgt": "wgt", "inp": "src", "acc": ""}[buffer]
        if name:
            return max((getattr(uop, name) for uop in uops), default=0)
        return max((max(uop.dst, uop.src) for uop in uops), default=0)

    def _range(self, nest: Gemm | Alu) -> range:
        return range(nest.uop_begin, nest.uop_begin + nest.uop_count)

    def uops_of(self, nest: Gemm | Alu) -> list[Uop]:
        """The micro-ops of a nest, as they lie in UOP by now."""
        return [self.uops.get(u, NOTHING) for u in self._range(nest)]

    def _uop_reads(self, nest: Gemm | Alu) -> Places:
        if nest.steps() == 0:
            return 0
        per_word = self.config.uops_per_word
        words = {u // per_word for u in self._range(nest)}
        return run(len(words)) << self.place["uop"] + min(words)

    def _entry(self, memory: Mem) -> int:
        return self.config.entry(memory.name.lower())

    def base(self, buffer: str, span: int) -> int:
        """Draws where a span of entries begins."""
        depth = self.config.depth(buffer)
        slack = min(WINDOW, depth) - span
        offset = self.rng.choice((0, self.rng.randint(0, max(slack, 0))))
        first = depth - span - offset if self.top else min(offset, depth - span)
        return max(min(first, depth - 1), 0)

    def _dram_base(self, words: int) -> int:
        """An address in the data, often close before a page."""
        port = self.config.port_bytes
        last = (DATA_AT + DATA_BYTES) // port - words
        word = self.rng.randint(DATA_AT // port, last)
        if self.rng.random() < 0.7:  # close together, so that stores meet loads
            page = self.rng.choice((DATA_AT, DATA_AT + 4096)) // port
            word = page + self.rng.randint(0, 16) * (self.config.channel_block // port or 1)
            word -= self.rng.choice((0, 0, 5)) if page > DATA_AT // port else 0
        return min(word, last) * port
