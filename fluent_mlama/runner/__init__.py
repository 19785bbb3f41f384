"""Whether a result is finished, who is at work on it, and what a killed run left: for every experiment."""
