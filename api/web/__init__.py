"""The pages for people: no build step, no internet, no inline script."""
