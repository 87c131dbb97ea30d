"""One module per subcommand of ``ccmem``; ``ccmem.cli`` has the list."""
