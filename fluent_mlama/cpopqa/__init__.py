"""CPopQA (Jiang and Joshi 2024): can a model rank the holidays of a country by how popular they are?"""
