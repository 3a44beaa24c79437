"""Dot products of bytes: four products of uint8 and int8 are added to the int32 of every lane.

    vpdpbusd    one instruction does it all (AVX-512 VNNI, AVX-VNNI)
    pmaddwd     one instruction adds two products of int16: bytes are spread first, the even and the
                odd ones apart (SSE2, AVX2, AVX-512 BW)
    usdot       one instruction does it all (ARMv8's I8MM)
    sdot        one instruction has int8 on both sides: data less 128, and 128 times the weights'
                sum, which is one more instruction for all rows of data (ARMv8's DotProd)
    multiply    the four bytes one after the other, on any processor

The sums are exact in each: none of the instructions saturates (Intel SDM, VPDPBUSD and PMADDWD;
Arm ARM, SDOT and USDOT), unlike pmaddubsw, which adds the products of two bytes in 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir as ll

from vdla.compiler.targets.lanes import splat

I16, I32 = ll.IntType(16), ll.IntType(32)
BYTE, BYTES = 8, 4  # bits, and how many a word has
VPDPBUSD = {n: f"llvm.x86.avx512.vpdpbusd.{32 * n}" for n in (4, 8, 16)}
PMADDWD = {
    4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512",
}  # fmt: skip

NEON = {2: "v2i32.v8i8", 4: "v4i32.v16i8"}
LEAST = -128  # of int8

# The function of a name, with the type of its result and its arguments.
Library = Callable[[str, ll.Type, list[ll.Value]], ll.Value]


def emit_dot(
    b: ll.IRBuilder,
    library: Library,
    instruction: str,
    sums: ll.Value,
    word: ll.Value,
    weights: ll.Value,
) -> ll.Value:
    """``sums[l] + Σ_k word[k] * weights[l][k]``: ``word`` is an int32 of four uint8, ``weights``
    are one of four int8 for every lane."""
    lanes = sums.type.count
    if instruction == "vpdpbusd" and lanes in VPDPBUSD:
        function = library(VPDPBUSD[lanes], sums.type, [sums.type] * 3)
        return b.call(function, [sums, splat(b, word, lanes), weights])
    if instruction in ("usdot", "sdot") and lanes in NEON:
        return _on_arm(b, library, instruction, sums, word, weights)
    if instruction in ("vpdpbusd", "pmaddwd") and lanes in PMADDWD:
        return _in_pairs(b, library, sums, splat(b, word, lanes), weights)
    for k in range(BYTES):
        value = b.and_(b.lshr(word, I32(BYTE * k)), I32((1 << BYTE) - 1))
        up = _all(sums.type, BYTE * (BYTES - 1 - k))
        factor = b.ashr(b.shl(weights, up), _all(sums.type, BYTE * (BYTES - 1)))
        sums = b.add(sums, b.mul(splat(b, value, lanes), factor))
    return sums


def _on_arm(
    b: ll.IRBuilder,
    library: Library,
    instruction: str,
    sums: ll.Value,
    word: ll.Value,
    weights: ll.Value,
) -> ll.Value:
    """``Σ (x - 128) w - Σ (-128) w`` where both sides are int8."""
    lanes = sums.type.count
    octets = ll.VectorType(ll.IntType(BYTE), BYTES * lanes)
    name = f"llvm.aarch64.neon.{instruction}.{NEON[lanes]}"
    function = library(name, sums.type, [sums.type, octets, octets])
    weights = b.bitcast(weights, octets)
    if instruction == "usdot":
        return b.call(function, [sums, b.bitcast(splat(b, word, lanes), octets), weights])
    signed = b.xor(word, I32(int.from_bytes(bytes([1 << (BYTE - 1)] * BYTES), signed=True)))
    less = b.call(function, [_all(sums.type, 0), weights, _all(octets, LEAST)])
    sums = b.call(function, [sums, weights, b.bitcast(splat(b, signed, lanes), octets)])
    return b.sub(sums, less)


def _in_pairs(
    b: ll.IRBuilder, library: Library, sums: ll.Value, data: ll.Value, weights: ll.Value
) -> ll.Value:
    """Even bytes are the low halves of int16, odd ones the high halves."""
    halves = ll.VectorType(I16, 2 * sums.type.count)
    function = library(PMADDWD[sums.type.count], sums.type, [halves, halves])
    data, weights = b.bitcast(data, halves), b.bitcast(weights, halves)
    byte = _all(halves, BYTE)
    even = b.and_(data, _all(halves, (1 << BYTE) - 1)), b.ashr(b.shl(weights, byte), byte)
    odd = b.lshr(data, byte), b.ashr(weights, byte)
    for pair in (even, odd):
        sums = b.add(sums, b.call(function, pair))
    return sums


def _all(kind: ll.Type, value: int) -> ll.Value:
    """A constant in every lane."""
    return ll.Constant(kind, [value] * kind.count)
