"""Scraping: one visit to a page, and what is read from it."""
