"""Simplified ARTMAP, from the equations in :mod:`ccmem.models.artmap`."""

from naive.fuzzy_art import naive as naive
