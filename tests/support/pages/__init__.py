"""Pages: of documentation, of the report and of the viewer, and the browser that shows them."""
