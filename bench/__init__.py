"""Benchmarks: each prints lines of `name value unit goal ok|short` and keeps them in bench/results/."""
