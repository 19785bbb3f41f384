"""The former names of the sibling papers' commands, ``python -m probes.NAME``; kept for one release."""
