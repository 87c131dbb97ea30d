"""How fast ccmem is: against the limit, against plain numpy, against peers. Run ``python -m benchmarks``."""
