"""The API objects that scheduling reads, parsed once into frozen values."""
