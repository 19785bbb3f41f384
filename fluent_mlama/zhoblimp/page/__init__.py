"""The web page on which paradigms are written, tried out and scored."""
