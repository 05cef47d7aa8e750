"""The plan as one page for a browser; `plan_page.py` defines its content."""
