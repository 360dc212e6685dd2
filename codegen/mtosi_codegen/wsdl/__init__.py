"""WSDL 1.1: the model of its services (`model`), reading (`read`) and putting them together (`join`)."""
