"""How fluent the verbalisations are, and whether what is more fluent is also known better."""
