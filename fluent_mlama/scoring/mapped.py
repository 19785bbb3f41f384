"""Pages of a memory-mapped checkpoint that nobody will read again.

safetensors weights are views of a mapped file, which stays mapped while one of them lives: letting a weight go frees
nothing by itself. The system may be told that a range of the mapping is not needed; should it be read after all, it
comes from the file again. Only ranges that belong to a file are ever given back, and only on Linux.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

Range = tuple[int, int]


def mapped_ranges() -> list[Range]:
    """Address ranges of this process that are backed by a file; none where the system does not tell."""
    if sys.platform != "linux":
        return []
    ranges = []
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/"):
            start, end = (int(part, 16) for part in fields[0].split("-"))
            ranges.append((start, end))
    return ranges


def give_back(tensor: Tensor, ranges: Sequence[Range]) -> bool:
    """Give back the whole pages of a contiguous tensor if they lie in one of ``ranges``; True if they were given back."""
    first, last = tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()
    if tensor.device.type != "cpu" or not any(
        start <= first and last <= end for start, end in ranges
    ):
        return False
    first, last = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, last // mmap.PAGESIZE * mmap.PAGESIZE
    if first >= last:
        return False
    return (
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_DONTNEED
        )
        == 0
    )
