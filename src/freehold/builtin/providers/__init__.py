"""The APIs of model providers: one module for each, all with the contract in `contract`."""
