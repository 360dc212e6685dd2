"""XML Schema: the model of its components (`model`) and the reading of schema elements into it (`read`)."""
