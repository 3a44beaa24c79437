"""A comparison as one HTML file: data as JSON, styles and scripts inline, no request to anywhere.

The page is drawn by the scripts beside this file from two kinds of data: the comparison (``data``),
and timelines (``trace-LAYER-THREADS``), each the very object that ``write_trace`` writes. They are
compressed to a fourteenth and unpacked when they are looked at: of most networks, all layers' fit.
Names come from models, so all data is escaped here, and the scripts set text, never markup.
"""

from __future__ import annotations

import html
import json
import re
import zlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from importlib.resources import files

from vdla.analysis.comparison import Comparison, Layer
from vdla.analysis.published import VTA_SOURCE
from vdla.analysis.same_schedule import SameSchedule
from vdla.analysis.sweep import Sweep
from vdla.compiler.placement import processor_remark
from vdla.compiler.schedule_words import schedule_words
from vdla.isa.config import Config
from vdla.isa.options import options_of
from vdla.sim.trace import trace_events

# Of all compressed timelines in a page; the traced layer's are always in it.
TRACE_BYTES = 2_600_000
BYTES_PER_INSTRUCTION = 30  # of a compressed timeline, about
TIMELINE_SCRIPTS = (
    "dom.js",
    "unpack.js",
    "charts.js",
    "tracks.js",
    "drawing.js",
    "timeline.js",
    "controls.js",
)


def report_page(
    model: str,
    comparison: Comparison,
    traced: Layer,
    sweep: Sweep | None = None,
    same: SameSchedule | None = None,
) -> str:
    """The page; the same for the same input.

    Args:
        model: how the page names the model.
        comparison: at least one layer, measured.
        traced: the layer of ``comparison`` whose timelines the page shows first; those of other
            layers are in it as far as they fit.
        sweep: adds the curve over memory latency.
        same: adds each layer's one schedule with its means of hiding apart.
    """
    traces = _traces(comparison, comparison.layers.index(traced))
    data = _data(model, comparison, traced, sweep, same) | {"traces": list(traces)}
    timelines = [
        embed_packed(f"trace-{place}-{v}", text)
        for place, texts in traces.items()
        for v, text in texts.items()
    ]
    return fill(
        asset("page.html"),
        {
            "title": html.escape(f"{model} on {comparison.config.name}: latency hiding"),
            "style": asset("page.css"),
            "timeline": timeline_section("layer", "vdla compare"),
            "data": "\n".join([embed("data", data), *timelines]),
            "script": "\n".join(
                map(asset, (*TIMELINE_SCRIPTS, "labels.js", "roofline.js", "page.js"))
            ),
        },
    )


def embed(name: str, value: object) -> str:
    """A script element that holds ``value`` as JSON and that no text inside can end."""
    text = json.dumps(value, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{html.escape(name)}">{text}</script>'


def packed(value: object) -> str:
    """A value as JSON, compressed, as text: what the page's ``unpack.js`` reads."""
    text = json.dumps(value, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def embed_packed(name: str, text: str) -> str:
    """A script element that holds what ``packed`` made."""
    return f'<script type="text/plain" id="{html.escape(name)}">{text}</script>'


def timeline_section(whole: str, command: str) -> str:
    """The markup of a timeline of a ``whole``, a layer or a run, that ``command`` writes, too."""
    return fill(asset("timeline.html"), {"whole": whole, "command": command})


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Replaces each ``{{name}}``; what is put in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def asset(name: str) -> str:
    """The text of a file beside this one."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def _traces(comparison: Comparison, first: int) -> dict[int, dict[int, str]]:
    """Compressed timelines by a layer's place and the number of virtual threads: the first layer's,
    then others' in their order as long as there is room."""
    layers, left = comparison.layers, TRACE_BYTES
    traces = dict[int, dict[int, str]]()
    for place in sorted(range(len(layers)), key=lambda place: place != first):
        runs = [measured.run for measured in layers[place].measured.values()]
        size = BYTES_PER_INSTRUCTION * sum(len(run.instructions) for run in runs)
        if place != first and size > left:
            continue
        texts = {v: packed(_trace(layers[place], v)) for v in comparison.vthreads}
        size = sum(map(len, texts.values()))
        if place == first or size <= left:
            traces[place] = texts
            left -= size
    return dict(sorted(traces.items()))


def _trace(layer: Layer, vthreads: int) -> dict[str, object]:
    measured = layer.measured[vthreads]
    linked = measured.program.linked
    return trace_events(measured.run, linked.layers, linked.stages)


def _data(
    model: str,
    comparison: Comparison,
    traced: Layer,
    sweep: Sweep | None,
    same: SameSchedule | None,
) -> dict[str, object]:
    others = comparison.published
    return {
        "model": model,
        "version": version("vdla"),
        "machine": machine_facts(comparison.config),
        "comparison": comparison.to_json(),
        "layers": {layer.name: _details(layer) for layer in comparison.layers},
        "placement": comparison.placement,
        "remark": processor_remark(comparison.placement),
        "endToEnd": _end_to_end(comparison),
        "peers": [vars(peer) for peer in others.hiding] if others else [],
        "vta": {"utilization": others.vta, "source": VTA_SOURCE} if others else None,
        "traced": traced.name,
        "sweep": sweep.to_json() if sweep else None,
        "same": _same(same) if same else None,
    }


def _same(same: SameSchedule) -> dict[str, object]:
    """The object of ``--same-schedule``'s JSON, with the schedules in words."""
    layers = [replace(x, schedule=schedule_words(x.schedule)) for x in same.layers]
    return replace(same, layers=layers).to_json()


def _end_to_end(comparison: Comparison) -> dict[str, object] | None:
    """The time of an inference with the most virtual threads, and how it is said in words."""
    whole = comparison.end_to_end(comparison.vthreads[-1])
    return {**whole.to_json(), "text": whole.text} if whole else None


def machine_facts(config: Config) -> dict[str, object]:
    """Facts that follow from the config, for the header and the roof."""
    return {
        "name": config.name,
        "hash": config.hash,
        "block": f"{config.block_in} × {config.block_out}",
        "clock": config.at_clock,
        "peak_gops": config.peak_gops,
        "memory": config.memory.name,
        "latency": config.memory.latency,
        "gb_per_s": config.bytes_per_cycle * config.clock_mhz / 1000,
        "buffers": _buffers(config),
    }


def _buffers(config: Config) -> dict[str, int]:
    """Bytes of every buffer that the config has."""
    sizes = {name: config.size(name) for name in ("inp", "wgt", "acc", "uop")}
    added = {option.title: option.memories for option in options_of(config) if option.memories}
    more = {name: sum(config.size(m.buffer) for m in added[name]) for name in added}
    return sizes | more


def _details(layer: Layer) -> dict[str, object]:
    """Details that the comparison's JSON leaves out, by number of virtual threads."""
    return {
        str(v): {
            "schedule": schedule_words(measured.tile),
            "instructions": len(measured.run.instructions),
            "causes": measured.run.causes,
        }
        for v, measured in layer.measured.items()
    }
