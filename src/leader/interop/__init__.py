"""Other libraries' objects as this one's, and the other way round; each is imported only where it is used."""
