"""What the hostile and the broken web does to a crawler: cases as data, run by the tests and shown by `make hostile`."""
