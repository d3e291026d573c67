"""Real servers and a faulty network for the Python tests; conftest.py makes fixtures of them."""
