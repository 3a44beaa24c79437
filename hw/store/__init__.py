"""STORE: from ACC to DRAM, by a reader, a pipeline that requantizes, and a side that bursts."""

from vdla.hw.store.started import IN_FLIGHT
from vdla.hw.store.store import Store

__all__ = ["IN_FLIGHT", "Store"]
