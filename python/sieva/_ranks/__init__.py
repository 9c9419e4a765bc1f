"""One read for the requests of all ranks: cut by where bytes lie, read once, sent to whoever asked.

The way of HiLa (Liu et al., *Locality-driven High-level I/O Aggregation for Processing Scientific Datasets*,
section IV.B, Algorithm 1): who reads what, and when, is planned by the engine (`_native.RankPlan`), for C as
for Python; `waves` reads and packs what the plan says, `exchange` sends, and `together` does all of it.
"""
