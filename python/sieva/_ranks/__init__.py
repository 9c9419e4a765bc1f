"""One read for the requests of all ranks: cut by where bytes lie, read once, sent to whoever asked.

The way of HiLa (Liu et al., *Locality-driven High-level I/O Aggregation for Processing Scientific Datasets*,
section IV.B, Algorithm 1): `pieces` cuts the requests, `plan` deals the pieces out to ranks, `union` removes
what several want, `exchange` sends, and `together` does all of it.
"""
