"""The same numbers in every form in which users have them."""

import numpy as np


def strided(a):
    wide = np.zeros(tuple(3 * n for n in a.shape), a.dtype)
    picked = wide[tuple(slice(None, None, 3) for _ in a.shape)]
    picked[...] = a
    return picked


def backwards(a):
    return np.ascontiguousarray(a[::-1])[::-1]


def big_endian(a):
    return a.astype(a.dtype.newbyteorder(">"))


def unaligned(a):
    raw = np.zeros(a.nbytes + 1, np.uint8)
    shifted = raw[1:].view(a.dtype).reshape(a.shape)
    shifted[...] = a
    return shifted


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS = {
    "plain": np.array,
    "fortran": np.asfortranarray,
    "strided": strided,
    "backwards": backwards,
    "big-endian": big_endian,
    "unaligned": unaligned,
    "read-only": read_only,
    "list": np.ndarray.tolist,
}
