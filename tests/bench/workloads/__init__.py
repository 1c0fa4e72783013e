"""Named workloads: what to load and which queries to run (see papers.py for the form)."""
