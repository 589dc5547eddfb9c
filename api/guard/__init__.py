"""What comes in is checked here, before a browser is taken."""
