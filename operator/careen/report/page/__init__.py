"""The plan as one page for a browser: what stands on it is in `plan_page.py`."""
