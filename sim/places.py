"""The entries that instructions touch, as bits of an integer; how far a LOAD or STORE reaches."""

from __future__ import annotations

from vdla.isa.instructions import Load, Store

Places = int  # a bit for each entry of each buffer and for each port word of DRAM


def load_entries(load: Load) -> int:
    """Entries that a LOAD writes, padding included."""
    height = load.pad_y0 + load.y_size + load.pad_y1
    return load.z_size * height * (load.pad_x0 + load.x_size + load.pad_x1)


def dram_span(each: Load | Store) -> int:
    """DRAM entries from the base to the last one."""
    if each.x_size * each.y_size * each.z_size == 0:
        return 0
    return (
        (each.z_size - 1) * each.z_stride
        + (each.y_size - 1) * each.y_stride
        + (each.x_size - 1) * each.x_stride
        + 1
    )


def acc_span(store: Store) -> int:
    """ACC entries from the first of a STORE's tile to the last."""
    planes, rows = max(store.z_size - 1, 0), max(store.y_size - 1, 0)
    return planes * store.z_pitch + rows * store.y_pitch + max(store.x_size, 1)


def run(length: int) -> Places:
    """Entries side by side, from the first on."""
    return (1 << length) - 1


def spread(places: Places, *loops: tuple[int, int]) -> Places:
    """Entries repeated by nested loops, each of an extent and a step."""
    for extent, step in loops:
        each, places = places, 0
        for i in range(extent):
            places |= each << i * step
    return places


def moved(each: Load | Store, entry_words: int, word_bytes: int) -> Places:
    """The port words that a LOAD or STORE moves, of DRAM or of INP: ``entry_words`` an entry."""
    sizes = each.x_size, each.y_size, each.z_size
    strides = (s * entry_words for s in (each.x_stride, each.y_stride, each.z_stride))
    words = spread(run(entry_words), *zip(sizes, strides, strict=True))
    return words << each.dram_base // word_bytes


def grouped(places: Places, size: int) -> Places:
    """Groups of ``size`` entries side by side, each of which has a place among ``places``."""
    groups = 0
    while places:
        group = ((places & -places).bit_length() - 1) // size
        groups |= 1 << group
        places &= ~(run(size) << group * size)
    return groups
