"""One task of the benchmark by sieva: ``ours.py TASK URL WAY``; prints seconds and answer as JSON."""

import json
import sys
import time

import sieva

RANGE = "lat BETWEEN 40 AND 60 AND lon BETWEEN 0 AND 30 AND time < '2000-01-05' AND t2m > 285"
CONDITIONS = {"range": RANGE, "scan": "u10 > 300", "two": "v10 > 300 AND msl > 290", "rare": "u10 > 308"}

task, url = sys.argv[1:3]
started = time.perf_counter()
source = sieva.open(url)
if task == "list":
    answer = ",".join(f"{name}{source[name].shape}" for name in sorted(source))
else:
    answer = str(source.query(CONDITIONS[task]).count())
print(json.dumps({"seconds": time.perf_counter() - started, "answer": answer}))
