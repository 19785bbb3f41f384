"""Where the (inflected) object stands in a sentence."""
