"""The tests; `tests.site` is the local site that they visit."""
