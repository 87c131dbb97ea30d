"""Speed of ccmem against the arithmetic limit, plain numpy and peers. Run ``python -m benchmarks``."""
