"""From scores to ranks: the protocols `paper` and `corrected`."""
