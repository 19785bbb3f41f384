"""Every file that the steps hand each other, one reader and one writer a kind."""
