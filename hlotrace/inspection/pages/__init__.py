"""A program as rows, and the page that shows them."""
