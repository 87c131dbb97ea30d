"""Where samples come from, in what order, with which labels: iterables of chunks, in constant memory."""
