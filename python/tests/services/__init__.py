"""Storage services on loopback that tests and benchmarks start, and stop again."""
