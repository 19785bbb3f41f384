"""The table of bad inputs: what is wrong, the command that is given, and the one line that it answers with."""
