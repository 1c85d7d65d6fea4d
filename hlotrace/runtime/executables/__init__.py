"""Programs compiled, kept, loaded and launched."""
