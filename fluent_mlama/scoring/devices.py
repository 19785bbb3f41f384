"""Which device and which number type a model runs in, and whether it will fit."""

from __future__ import annotations

import ctypes
import gc
import sys
import warnings
from typing import Any

import psutil
import torch

from fluent_mlama.console import UserError, note, plain_number
from fluent_mlama.scoring.failures import INSTEAD, memory_error

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
KEPT_FREE_BYTES = 128 << 20
"""Freed memory that may stay at the heap's end: more than one forward allocates at a time."""
LARGEST_KEPT_BYTES = 1000 << 20
"""Larger blocks go back to the system as soon as they are freed."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_SPARE = 1.05  # activations and the loader's own needs on top of the weights


def choose_device(wanted: str) -> torch.device:
    """``auto``: cuda, else mps, else cpu. A missing device is a UserError with the reason."""
    kind = wanted.partition(":")[0]
    if kind not in ("auto", "cpu", "cuda", "mps"):
        raise UserError(f"--device {wanted}: choose auto, cpu, cuda, cuda:N or mps")
    if kind == "cpu":
        return torch.device("cpu")
    if kind == "mps":
        if not torch.backends.mps.is_available():
            raise UserError(
                f"--device mps: no Apple GPU can be used here; use --device cpu, {INSTEAD}"
            )
        return torch.device("mps")
    trouble = cuda_trouble()
    if trouble is None:
        return _numbered(wanted)
    if kind == "cuda":
        raise UserError(f"--device {wanted}: {trouble}; or use --device cpu with --model smollm2")
    # Only a machine that is meant to have a GPU deserves a note: not a CPU build of torch.
    if torch.version.cuda is not None and "driver" in trouble:
        note(f"GPU not used: {trouble}")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def cuda_trouble() -> str | None:
    """None if cuda works, else why not: CPU build, no driver or an old one, no visible GPU."""
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return (
            f"this torch ({torch.__version__}) is a CPU build; install one with CUDA,"
            " e.g. pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cu126"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if torch.cuda.is_available():
            return None
        try:
            torch.cuda.init()
        except Exception as error:
            # torch raises RuntimeError, AssertionError or its own DeferredCudaCallError.
            text = " ".join(str(error).split())
            if "too old" in text:
                return f"the NVIDIA driver is too old for torch {torch.__version__}; update the driver or install a torch for an older CUDA"
            if "no NVIDIA driver" in text.replace("Found ", ""):
                return "no NVIDIA driver was found; install it, or check that the container sees the GPU"
            return f"CUDA cannot be started ({text[:150]})"
    return "torch sees no GPU; check CUDA_VISIBLE_DEVICES and nvidia-smi"


def _numbered(wanted: str) -> torch.device:
    _, _, number = wanted.partition(":")
    place = plain_number(number or "0")
    if place is None or place >= torch.cuda.device_count():
        raise UserError(
            f"--device {wanted}: there are {torch.cuda.device_count()} GPUs, counted from 0"
        )
    return torch.device(f"cuda:{number}" if number else "cuda")


def choose_dtype(wanted: str, device: torch.device, config: Any) -> torch.dtype:
    """``auto``: the checkpoint's number type on a GPU, float32 on a CPU."""
    if wanted == "auto":
        stored = getattr(config, "dtype", None)
        return stored if device.type != "cpu" and isinstance(stored, torch.dtype) else torch.float32
    if wanted not in DTYPES:
        raise UserError(f"--dtype {wanted}: choose auto, {', '.join(DTYPES)}")
    return DTYPES[wanted]


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for torch.float32."""
    return str(dtype).removeprefix("torch.")


def free_memory(device: torch.device) -> int:
    """Free bytes on the device; of the machine where the device has no memory of its own."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available


def release_memory() -> None:
    """Free what nothing uses: models in reference cycles, and what torch caches of a GPU."""
    gc.collect()
    give_back_freed()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()


def give_back_freed() -> None:
    """Hand freed blocks back to the system, where the C library knows how (glibc).

    Small things that stay (oneDNN's kernels, scores) lie among the large blocks that come and go:
    left alone, the heap grows by some megabytes per forward, nearly all of it holes.
    """
    trim = _of_c_library("malloc_trim")
    if trim is not None:
        trim(ctypes.c_size_t(0))


def keep_freed() -> None:
    """Let freed blocks stay with the process (glibc) until ``give_back_freed``.

    By itself glibc returns the end of its heap whenever some 50 MB there are free. Every layer of a
    forward brings that about, and each page fetched again is a fault: 160,000 in the first forward,
    a fifth of its time.
    """
    set_option = _of_c_library("mallopt")
    if set_option is not None:
        set_option(_M_TRIM_THRESHOLD, KEPT_FREE_BYTES)
        set_option(_M_MMAP_THRESHOLD, LARGEST_KEPT_BYTES)


def _of_c_library(name: str) -> Any:
    """A function of the C library; None where it has none of that name, and off Linux."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def check_memory(
    name: str, weight_bytes: int | None, config: Any, dtype: torch.dtype, device: torch.device
) -> None:
    """Refuse a model whose weights cannot fit (``weight_bytes``: size on disk, None if unknown)."""
    free = free_memory(device)
    if weight_bytes is None:
        return
    # The files hold weights in the stored type; in memory they have the run's.
    stored = getattr(config, "dtype", None) or torch.float32
    needed = int(weight_bytes * dtype.itemsize / stored.itemsize * _SPARE)
    if needed > free:
        raise memory_error(name, needed, free, str(device))
