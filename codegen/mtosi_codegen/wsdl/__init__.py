"""WSDL 1.1: the model of its definitions (`model`), reading them (`read`) and joining them to services (`join`)."""
