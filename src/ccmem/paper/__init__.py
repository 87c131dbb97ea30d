"""The laboratory behind ``ccmem reproduce``: data sets, other methods, experiments and report."""
