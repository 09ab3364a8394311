"""The counter-based random numbers of runtime/base/random.h, written again from their definition."""

import numpy as np

MASK = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """Ten rounds of Philox 4x32 on an array of counters (n, 4) of uint32; returns the same shape."""
    c = [counter[:, i].astype(np.uint64) for i in range(4)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [
            (p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            p1 & MASK,
            (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            p0 & MASK,
        ]
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=1).astype(np.uint32)


def words(count, seed, micro_batch=0, iteration=0, slot=0, stream=0):
    """Words 0 .. count - 1 of a position."""
    blocks = (count + 3) // 4
    counter = np.empty((blocks, 4), dtype=np.uint32)
    counter[:, 0] = np.arange(blocks, dtype=np.uint32)
    counter[:, 1] = micro_batch
    counter[:, 2] = iteration
    counter[:, 3] = (slot << 24) | stream
    return philox(counter, seed).reshape(-1)[:count]


def uniforms(count, **position):
    return (words(count, **position).astype(np.float64) + 0.5) * 2.0**-32


def normals(count, **position):
    """Box-Muller on pairs of words: cosine first, sine second."""
    u = uniforms((count + 3) // 4 * 4, **position).reshape(-1, 2)
    radius = np.sqrt(-2.0 * np.log(u[:, 0]))
    angle = 2.0 * np.pi * u[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:count]
