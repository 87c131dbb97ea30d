"""User interface of the package: the command line, the learner that it runs, and the live page."""
