"""The contract: the cases of tests/contract; tests/contract/README.md explains them."""
